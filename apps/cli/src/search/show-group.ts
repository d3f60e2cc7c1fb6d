import { columnsOf } from "../host.ts";
import type { SearchHit, SessionState } from "@throughline/core";
import { type HitGroup, sessionName, sessionProgram, systemClock } from "@throughline/core/internal";
import { cellWidth, shorten } from "../cells.ts";
import type { CommandContext } from "../command.ts";
import type { Piece } from "../output.ts";
import { shownFolder, shownProgram } from "../session-names.ts";
import { ageText } from "../time-text.ts";

/** Holds the number of a hit, and aligns the other lines with its text. */
const numberCells = 5;
const indent = " ".repeat(numberCells);

/** `state` is null if the session was removed meanwhile. */
export interface FoundSession {
  readonly hit: Pick<SearchHit, "ref" | "sessionId">;
  readonly state: SessionState | null;
  readonly name: string | null;
}

/** Numbers the hits of the group from `first` on. */
export async function showGroup(
  context: ShowContext,
  found: FoundSession,
  group: HitGroup,
  first: number,
): Promise<void> {
  await showHeading(context, found);
  for (const [index, hit] of group.best.entries()) await showHit(context, hit, first + index);
  if (group.more > 0) await context.output.line(indent, { text: `+${group.more} more`, style: "dim" });
}

type ShowContext = Pick<CommandContext, "host" | "output">;

export async function showHeading({ host, output }: ShowContext, found: FoundSession): Promise<void> {
  const { hit, state } = found;
  const { ref, sessionId } = hit;
  const width = widthOf({ host, output });
  const facts = state === null ? null : factsOf(state, host.userHome);
  const room = width ?? Number.POSITIVE_INFINITY;
  const [name, rest] = fitted(found.name ?? sessionName({ ref, entry: { sessionId } }), facts, room);
  await output.line({ text: name, style: "bold" }, { text: rest, style: "dim" });
  await output.line(indent, { text: nameOf(hit), style: "dim" });
}

/** Returns the key, or the id of an archived session, because its key may belong to another one. */
export function nameOf({ ref, sessionId }: Pick<SearchHit, "ref" | "sessionId">): string {
  return ref.archiveId === undefined ? ref.key : sessionId;
}

function widthOf({ host, output }: ShowContext): number | null {
  return output.isTerminal ? columnsOf(host.stdout) : null;
}

interface SessionFacts {
  readonly program: string;
  readonly folder: string | null;
  readonly age: string;
}

function factsOf({ entry, archived, updatedAtMs }: SessionState, userHome: string): SessionFacts {
  return {
    program: shownProgram(sessionProgram(entry)),
    folder: shownFolder(entry.cwd, userHome) || null,
    age: `${ageText(updatedAtMs, systemClock.nowMs())}${archived ? ", archived" : ""}`,
  };
}

const gap = "  ";
const shortestName = 20;
const shortestFolder = 12;

/** Fits a name and its facts into `cells`: first the folder is cut, then omitted, and finally the name is cut. */
function fitted(name: string, facts: SessionFacts | null, cells: number): readonly [string, string] {
  const flat = name.replaceAll(/\s+/g, " ").trim();
  if (facts === null) return [shorten(flat, cells), ""];
  const { program, folder, age } = facts;
  const whole = [program, ...(folder === null ? [] : [folder]), age].map((fact) => gap + fact).join("");
  if (cellWidth(flat + whole) <= cells) return [flat, whole];
  const nameCells = cellWidth(flat);
  const left = cells - cellWidth(`${gap}${program}${gap}${age}`);
  const roomOfFolder = Math.max(shortestFolder, left - nameCells - gap.length);
  const hasFolder = folder !== null && left - gap.length - roomOfFolder >= Math.min(nameCells, shortestName);
  const shown = hasFolder
    ? `${gap}${program}${gap}${shorten(folder, roomOfFolder)}${gap}${age}`
    : `${gap}${program}${gap}${age}`;
  return [shorten(flat, Math.max(1, cells - cellWidth(shown))), shown];
}

export async function showHit(
  context: ShowContext,
  { seq, role, snippet, highlights }: SearchHit,
  number: number,
): Promise<void> {
  const width = widthOf(context);
  const start = `${number}  `.padStart(numberCells);
  const place = `#${seq} ${role ?? "record"}: `;
  const cells = width === null ? Number.POSITIVE_INFINITY : Math.max(20, width - start.length - place.length);
  const flat = flatSnippet(snippet, highlights);
  const pieces = snippetPieces(flat.snippet, flat.highlights, cells);
  await context.output.line(start, { text: place, style: "cyan" }, ...pieces);
}

/** Replaces each run of white space with one space, because indentation and line ends take room of the line. */
export function flatSnippet(
  snippet: string,
  highlights: SearchHit["highlights"],
): Pick<SearchHit, "snippet" | "highlights"> {
  const places: number[] = [];
  let flat = "";
  for (let at = 0; at < snippet.length; at++) {
    places.push(flat.length);
    const unit = snippet.charAt(at);
    const isSpace = unit.trim() === "";
    if (!isSpace) flat += unit;
    else if (flat !== "" && !flat.endsWith(" ")) flat += " ";
  }
  const placeOf = (at: number): number => places[at] ?? flat.length;
  return { snippet: flat, highlights: highlights.map(([start, end]) => [placeOf(start), placeOf(end)] as const) };
}

/** Returns the part of a snippet around its first match, with matches in bold. */
export function snippetPieces(snippet: string, highlights: SearchHit["highlights"], cells: number): readonly Piece[] {
  const [from, to] = cellWidth(snippet) <= cells ? [0, snippet.length] : windowOf(snippet, highlights, cells);
  const pieces: Piece[] = from === 0 ? [] : ["…"];
  let at = from;
  for (const [start, end] of highlights) {
    if (end <= at || start >= to) continue;
    pieces.push(snippet.slice(at, Math.max(at, start)));
    pieces.push({ text: snippet.slice(Math.max(at, start), Math.min(end, to)), style: "bold" });
    at = Math.min(end, to);
  }
  return [...pieces, snippet.slice(at, to), ...(to < snippet.length ? ["…"] : [])];
}

/** Places the first match in the first quarter, at whole characters; two cells are left for the ellipses. */
function windowOf(snippet: string, highlights: SearchHit["highlights"], cells: number): readonly [number, number] {
  const room = cells - 2;
  const first = highlights[0]?.[0] ?? 0;
  let from = first;
  for (const character of Array.from(snippet.slice(0, first)).toReversed()) {
    if (cellWidth(snippet.slice(from - character.length, first)) > room / 4) break;
    from -= character.length;
  }
  let to = from;
  for (const character of snippet.slice(from)) {
    if (cellWidth(snippet.slice(from, to + character.length)) > room) break;
    to += character.length;
  }
  // If the text ends early, the free cells extend the part to the left.
  if (to === snippet.length)
    for (const character of Array.from(snippet.slice(0, from)).toReversed()) {
      if (cellWidth(snippet.slice(from - character.length, to)) > room) break;
      from -= character.length;
    }
  return [from, to];
}

import type { JSX } from "preact";
import { ageOf, count, folderOf, momentOf, programName } from "../format.ts";
import type { HitGroupJson, HitJson } from "../json.ts";
import { placeOf, sessionHref } from "../router.ts";
import { shown } from "../ui/text.ts";

interface GroupProps {
  readonly group: HitGroupJson;
  readonly words: string;
  /** Is the level of the heading, below that of the list. */
  readonly level: "h2" | "h3";
}

/** Shows a session and its best hits. Each hit is a link to its record. */
export function HitGroup({ group, words, level: Heading }: GroupProps): JSX.Element {
  const { session, hits, total, isTotalExact } = group;
  const place = placeOf(session);
  const more = total - hits.length;
  return (
    <article class="hit-group">
      <Heading>
        <a href={sessionHref(place, { q: words })}>{shown(session.name)}</a>
        <span class="soft">
          {shown(programName(session.program))}
          {session.cwd === null ? "" : ` · ${shown(folderOf(session.cwd))}`} · {ageOf(session.updatedAtMs)}
        </span>
      </Heading>
      {hits.map((hit) => (
        <a key={hit.seq} class="hit" href={sessionHref(place, { at: hit.seq, q: words })}>
          <span class="hit-role">{shown(roleName(hit.role))}</span>
          <span class="hit-text">
            <MarkedText hit={hit} />
          </span>
          <time class="hit-time">{momentOf(hit.tsMs)}</time>
        </a>
      ))}
      {more > 0 ? (
        <a class="hit-more" href={sessionHref(place, { q: words })}>
          {count(more)}
          {isTotalExact ? "" : "+"} more in this session
        </a>
      ) : null}
    </article>
  );
}

export function roleName(role: string | null): string {
  if (role === "user") return "User";
  if (role === "assistant") return "Assistant";
  return role === "toolResult" ? "Tool" : (role ?? "Record");
}

/** Shows a text with its hits marked. */
function MarkedText({ hit: { snippet, highlights } }: { readonly hit: HitJson }): JSX.Element {
  const parts: (string | JSX.Element)[] = [];
  let from = 0;
  for (const [start, end] of highlights) {
    if (start < from || end > snippet.length) continue;
    parts.push(shown(snippet.slice(from, start)), <mark key={start}>{shown(snippet.slice(start, end))}</mark>);
    from = end;
  }
  return (
    <>
      {parts}
      {shown(snippet.slice(from))}
    </>
  );
}

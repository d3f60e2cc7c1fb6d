import { UnicodeGraphemesAddon } from "@xterm/addon-unicode-graphemes";
import xterm from "@xterm/headless";
import { spawn } from "@lydell/node-pty";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { binPath, cleanEnvironment, sourceCondition } from "./harness.ts";
import { endProcessTrees } from "./process-tree.ts";

const columns = 96;
const rows = 22;
const cell = { width: 8.4, height: 18, pad: 12 };
/** The terminal is looked at this often. */
const lookMs = 60;
/** A pause is shown for this long at most, whatever the machine took. */
const longestFrameMs = 1200;
const typedMs = 45;

interface Frame {
  readonly rows: readonly string[];
  readonly durationMs: number;
}

/** A shell in a real terminal, of which each state is kept. `throughline` in it is the command line under test. */
export class Recording {
  readonly #terminal = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true, logLevel: "off" });
  readonly #child: ReturnType<typeof spawn>;
  readonly #frames: Frame[] = [];
  readonly #home: string;

  constructor(home: string, folder: string, environment: Readonly<Record<string, string>>) {
    this.#home = home;
    const bin = join(home, "bin");
    mkdirSync(bin, { recursive: true });
    const program = join(bin, "throughline");
    writeFileSync(
      program,
      `#!/bin/sh\necho $$ > '${home}/pid'\nexec '${process.execPath}' ${sourceCondition} '${binPath}' "$@"\n`,
    );
    chmodSync(program, 0o755);
    this.#terminal.loadAddon(new UnicodeGraphemesAddon());
    const { PATH = "" } = process.env;
    this.#child = spawn("bash", ["--norc", "--noprofile", "-i"], {
      name: "xterm-256color",
      cols: columns,
      rows,
      cwd: folder,
      env: cleanEnvironment(home, {
        PATH: `${bin}:${PATH}`,
        PS1: "$ ",
        LANG: "C.UTF-8",
        LC_ALL: "C.UTF-8",
        ...environment,
      }),
    });
    this.#child.onData((data) => this.#terminal.write(data));
  }

  /** Types a text as a person does, and Enter. */
  async type(text: string): Promise<void> {
    for (const character of text) {
      this.#child.write(character);
      await this.#look(typedMs);
    }
    this.press("\r");
  }

  press(keys: string): void {
    this.#child.write(keys);
  }

  /** Keeps what the terminal shows until a row matches, and then for a while longer. */
  async until(wanted: RegExp, thenMs = 800, limitMs = 90_000): Promise<void> {
    const endMs = Date.now() + limitMs;
    while (!this.text().some((row) => wanted.test(row))) {
      if (Date.now() > endMs) throw new Error(`${String(wanted)} did not come: ${this.text().join("\n")}`);
      await this.#look(lookMs);
    }
    await this.#look(lookMs);
    this.#hold(thenMs);
  }

  /** Keeps what the terminal shows for a time. */
  async pass(durationMs: number): Promise<void> {
    const endMs = Date.now() + durationMs;
    while (Date.now() < endMs) await this.#look(lookMs);
  }

  /** Returns the rows that the terminal shows now. */
  text(): readonly string[] {
    const { active } = this.#terminal.buffer;
    return Array.from({ length: rows }, (_, at) => active.getLine(active.baseY + at)?.translateToString(true) ?? "");
  }

  /** Returns the recording as an image that moves without a script. */
  svg(title: string): string {
    return svgOf(this.#frames, title);
  }

  /** Ends the shell and everything that runs in it. */
  async close(): Promise<void> {
    await endProcessTrees([this.#child.pid]);
  }

  async #look(durationMs: number): Promise<void> {
    await wait(lookMs);
    await new Promise<void>((resolve) => this.#terminal.write("", resolve));
    const { active } = this.#terminal.buffer;
    const shown = Array.from({ length: rows }, (_, at) => rowOf(active.getLine(active.baseY + at), this.#home));
    const last = this.#frames.at(-1);
    if (last === undefined || last.rows.some((row, at) => row !== shown[at]))
      this.#frames.push({ rows: shown, durationMs });
    else this.#hold(durationMs);
  }

  #hold(durationMs: number): void {
    const last = this.#frames.at(-1);
    if (last === undefined) return;
    const longer = Math.max(last.durationMs, Math.min(longestFrameMs, last.durationMs + durationMs));
    this.#frames.splice(-1, 1, { rows: last.rows, durationMs: longer });
  }
}

const palette = [
  ["#1c1c1c", "#d75f5f", "#87af5f", "#d7af5f", "#5f87d7", "#af87d7", "#5fafaf", "#c6c6c6"],
  ["#6c6c6c", "#ff8787", "#afd787", "#ffd787", "#87afff", "#d7afff", "#87d7d7", "#eeeeee"],
].flat();

type Line = ReturnType<(typeof xterm.Terminal)["prototype"]["buffer"]["active"]["getLine"]>;

/** The directory of the test has a name by chance. */
const shownHome = "/home/ada";

/** Returns a row as texts, one for each style. */
function rowOf(line: Line, home: string): string {
  const texts: string[] = [];
  let run = { text: "", style: "", at: 0 };
  const end = (): void => {
    const x = (cell.pad + run.at * cell.width).toFixed(1);
    if (run.text.trim() !== "")
      texts.push(`<text x="${x}"${run.style}>${escaped(run.text.trimEnd().replaceAll(home, shownHome))}</text>`);
  };
  for (let at = 0; at < columns; at++) {
    const found = line?.getCell(at);
    if (found === undefined || found.getWidth() === 0) continue;
    const color = found.isFgPalette() ? ` fill="${palette[found.getFgColor()] ?? "#d0d0d0"}"` : "";
    const style = `${found.isBold() ? ' font-weight="bold"' : ""}${found.isDim() ? ' opacity=".6"' : ""}${color}`;
    if (style !== run.style) {
      end();
      run = { text: "", style, at };
    }
    run.text += found.getChars() === "" ? " " : found.getChars();
  }
  end();
  return texts.join("");
}

/** Only characters of a text stand in the image; what XML gives a meaning is written by its name. */
function escaped(text: string): string {
  const names: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
  // oxlint-disable-next-line no-control-regex -- XML has no such characters
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, "").replace(/[&<>]/g, (sign) => names[sign] ?? "");
}

function svgOf(frames: readonly Frame[], title: string): string {
  const totalMs = frames.reduce((sum, { durationMs }) => sum + durationMs, 0);
  const ids = new Map<string, string>();
  const idOf = (row: string): string => ids.get(row) ?? (ids.set(row, `r${ids.size}`), `r${ids.size - 1}`);
  const percent = (ms: number): string => `${((ms / totalMs) * 100).toFixed(3)}%`;
  let atMs = 0;
  const parts = frames.map(({ rows: shown, durationMs }, index) => {
    const uses = shown.map((row, y) =>
      row === "" ? "" : `<use href="#${idOf(row)}" y="${cell.pad + 13 + y * cell.height}"/>`,
    );
    const start = index === 0 ? "0%{visibility:visible}" : `0%{visibility:hidden}${percent(atMs)}{visibility:visible}`;
    atMs += durationMs;
    const end = index === frames.length - 1 ? "" : `${percent(atMs)}{visibility:hidden}`;
    const style = `animation:f${index} ${(totalMs / 1000).toFixed(2)}s step-end infinite`;
    return { body: `<g style="${style}">${uses.join("")}</g>`, rule: `@keyframes f${index}{${start}${end}}` };
  });
  const width = Math.ceil(columns * cell.width + 2 * cell.pad);
  const height = rows * cell.height + 2 * cell.pad;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="monospace" font-size="14" fill="#d0d0d0" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>text{white-space:pre}${parts.map(({ rule }) => rule).join("")}</style>`,
    `<rect width="100%" height="100%" rx="8" fill="#1c1c1c"/>`,
    `<defs>${[...ids].map(([row, id]) => `<g id="${id}">${row}</g>`).join("")}</defs>`,
    `${parts.map(({ body }) => body).join("")}</svg>\n`,
  ].join("\n");
}

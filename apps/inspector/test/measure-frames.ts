import process from "node:process";
import type { Page } from "playwright-core";
import { launch, type Opened, openPage, sessionPath } from "./browser.ts";
import { writeLongSession } from "./long-session.ts";

// The page over a session of 100,000 records in Chromium with software rendering: first rows, chapters, frames of a wheel and of
// a fling, and jumps to records. Medians of rounds.
// node --conditions=@throughline/source apps/inspector/test/measure-frames.ts [records] [rounds] [--check]

const numbers = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const records = Number(numbers[0] ?? 100_000);
const rounds = Number(numbers[1] ?? 5);
const key = "agent:main:long";
const path = sessionPath(key);

interface Frames {
  readonly perSecond: number;
  readonly p95Ms: number;
}

/** Has times of the page in milliseconds since its navigation began. */
interface Opening {
  readonly rowsMs: number;
  readonly chaptersMs: number;
}

interface Jump {
  readonly rowMs: number;
  readonly textMs: number;
}

const row = "article .prose, article .row";

/** Opens the session as a link does, and reads the page's own clock. */
async function open({ page, go }: Opened): Promise<Opening> {
  await page.goto("about:blank");
  await go(path);
  await page.waitForFunction(() => "chaptersMs" in window);
  return page.evaluate(() => {
    const { rowsMs, chaptersMs } = window as unknown as Opening;
    return { rowsMs, chaptersMs };
  });
}

/** Notes in each page when the first row and the first chapter stand in a frame. */
function noteOpening(selector: string): void {
  const seen = window as unknown as { rowsMs?: number; chaptersMs?: number };
  const look = (): void => {
    if (document.querySelector(selector) !== null) seen.rowsMs ??= performance.now();
    if (document.querySelector(".side a") !== null) seen.chaptersMs ??= performance.now();
    if (seen.chaptersMs === undefined) requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}

/** Turns the wheel for three seconds, and counts the frames meanwhile. */
async function scroll(page: Page, pixels: number): Promise<Frames> {
  await page.mouse.move(700, 500);
  const counted = page.evaluate(
    () =>
      new Promise<number[]>((resolve) => {
        const times: number[] = [];
        const frame = (now: number): void => {
          times.push(now);
          if (now - (times[0] ?? now) < 3000) requestAnimationFrame(frame);
          else resolve(times);
        };
        requestAnimationFrame(frame);
      }),
  );
  let isOver = false;
  void counted.then(() => (isOver = true));
  while (!isOver) await page.mouse.wheel(0, pixels);
  const times = await counted;
  const steps = times.slice(1).map((time, at) => time - (times[at] ?? time));
  const ordered = steps.toSorted((a, b) => a - b);
  const total = steps.reduce((sum, step) => sum + step, 0);
  return { perSecond: (steps.length * 1000) / total, p95Ms: ordered[Math.floor(ordered.length * 0.95)] ?? 0 };
}

/** Goes to a record as a link inside of the page does, until its row, and then its text, stand in a frame. */
function jump(page: Page, seq: number): Promise<Jump> {
  return page.evaluate(
    ([to, selector]) =>
      new Promise<Jump>((resolve) => {
        const start = performance.now();
        const address = new URL(location.href);
        address.searchParams.set("at", String(to));
        history.pushState(null, "", address);
        dispatchEvent(new PopStateEvent("popstate"));
        let rowMs: number | null = null;
        const look = (): void => {
          const found = document.querySelector(`article[data-seq="${to}"]`);
          const y = found?.getBoundingClientRect().y ?? -1;
          if (y > 0 && y < innerHeight) {
            rowMs ??= performance.now() - start;
            if (found?.matches(`:has(${selector})`) === true)
              return resolve({ rowMs, textMs: performance.now() - start });
          }
          requestAnimationFrame(look);
        };
        requestAnimationFrame(look);
      }),
    [seq, ".prose, .row"] as const,
  );
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

const browser = await launch();
const opened = await openPage(browser, (store) => writeLongSession(store, key, records));
const { page } = opened;
await page.addInitScript(noteOpening, row);
const cold = await open(opened);
const openings: Opening[] = [];
const [wheels, flings, jumps]: [Frames[], Frames[], Jump[]] = [[], [], []];
for (let round = 0; round < rounds; round++) {
  openings.push(await open(opened));
  wheels.push(await scroll(page, 100));
  flings.push(await scroll(page, 4000));
  // A message of the model in each part of the session.
  for (let at = 1; at < 8; at++) jumps.push(await jump(page, Math.floor((records * at) / 160) * 20 + 2 + 2 * round));
}
await opened.close();
await browser.close();

const figures: readonly (readonly [name: string, value: number, most: number])[] = [
  ["first rows, first time, ms", cold.rowsMs, 1000],
  ["first rows, ms", median(openings.map(({ rowsMs }) => rowsMs)), 800],
  ["chapters, ms", median(openings.map(({ chaptersMs }) => chaptersMs)), 2500],
  ["chapters, first time, ms", cold.chaptersMs, 2500],
  ["wheel, ms a frame", 1000 / median(wheels.map(({ perSecond }) => perSecond)), 1000 / 55],
  ["wheel, p95 ms", median(wheels.map(({ p95Ms }) => p95Ms)), 25],
  ["fling, ms a frame", 1000 / median(flings.map(({ perSecond }) => perSecond)), 1000 / 45],
  ["jump to the row, ms", median(jumps.map(({ rowMs }) => rowMs)), 120],
  ["jump to its text, ms", median(jumps.map(({ textMs }) => textMs)), Infinity],
];
for (const [name, value, most] of figures)
  process.stdout.write(`${name.padEnd(28)}${value.toFixed(1).padStart(9)}  of ${most.toFixed(1)}\n`);
if (process.argv.includes("--check") && figures.some(([, value, most]) => value > most)) process.exitCode = 1;

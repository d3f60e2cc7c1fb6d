import type { SessionStore } from "@throughline/core";
import { prompt, reply, result, writeSession } from "./browser.ts";

/** Is the key of a session that has something to show on every screen. */
export const fullKey = "agent:main:harbor";

const code = `/** Returns the next high water. */
export async function nextTide(port: string): Promise<Tide | null> {
  const rows = await read(\`tides/\${port}.csv\`);
  return rows.find(({ height }) => height > 4.2) ?? null; // in meters
}`;

const usage = (input: number, output: number): object => ({
  usage: { input, output, cacheRead: input * 4, cacheWrite: 900, cost: { total: input / 40_000 } },
});

const call = (id: string, name: string, args: object): object => ({ type: "toolCall", id, name, arguments: args });

const records: readonly Readonly<Record<string, unknown>>[] = [
  prompt("Find the next high water, and write it to `next.ts`."),
  reply(
    [
      { type: "thinking", thinking: "**Reading** the tables first." },
      { type: "text", text: `The table has a row per tide. This finds one:\n\n\`\`\`ts\n${code}\n\`\`\`` },
      call("h1", "write", { path: "/home/ada/harbor/next.ts", content: code }),
    ],
    usage(4200, 380),
  ),
  result("h1", "write", "Wrote 5 lines."),
  reply([call("h2", "bash", { command: "npm test -- next" })], usage(4700, 90)),
  result("h2", "bash", "1 failed: the port is unknown", true),
  reply([call("h3", "Task", { prompt: "Read the charts of the north." })], usage(5100, 60)),
  result("h3", "Task", "The north has fog."),
  { type: "compaction", summary: "The tide is in **next.ts**.", tokensBefore: 180_112, tokensAfter: 41_020 },
  prompt("Now in Python, and explain the height."),
  reply(
    [
      { type: "text", text: "| port | height |\n| --- | ---: |\n| north | 4.2 m |\n| south | 3.9 m |" },
      call("h4", "edit", {
        path: "/home/ada/harbor/next.py",
        old_string: "def next_tide(port):\n    return None\n",
        new_string:
          'def next_tide(port: str):\n    """Returns the next high water."""\n    return first(rows, above=4.2)\n',
      }),
    ],
    usage(2900, 410),
  ),
  result("h4", "edit", "ok"),
  reply([{ type: "text", text: "A tide counts as high above **4.2 m**." }], usage(3100, 40)),
];

/** Writes a session of two hours with code, calls, a failure, usage and a compaction, its sub-agent and its fork. */
export async function writeFullSession(store: SessionStore): Promise<void> {
  const start = Date.UTC(2026, 9, 14, 8, 30);
  const dated = records.map((record, index) => {
    // A pause before the second prompt is folded on the axis.
    const pause = index < 8 ? 0 : 90 * 60_000;
    return { ...record, timestamp: new Date(start + index * 41_000 + pause).toISOString() };
  });
  const title = "Find the next high water";
  await writeSession(store, fullKey, { title, cwd: "/home/ada/harbor", model: "model-large-5" }, dated);
  const child = { namespace: "", agentId: "main", key: "agent:main:charts" };
  // A sub-agent stands under the call during which it began.
  const entry = { sessionId: "charts", title: "Charts", spawnedBy: fullKey, spawnDepth: 1 };
  await store.save(child, entry, { ifRevision: null, createdAtMs: start + 5 * 41_000 + 9000 });
  await store.append(child, [
    prompt("Read the charts of the north."),
    reply([{ type: "text", text: "The north has **fog**." }]),
  ] as never);
  const forkedFrom = { agentId: "main", key: fullKey, sessionId: fullKey.replaceAll(":", "-"), atSeq: 9 };
  await writeSession(store, "agent:main:python", { title: "The same in Python", forkedFrom }, [
    prompt("Only in Python, please."),
  ]);
}

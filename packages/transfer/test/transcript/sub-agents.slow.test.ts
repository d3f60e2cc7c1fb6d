import { type RecordDraft, sessionRef, type SessionStore } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, it } from "vitest";
import { pageRef, pageTexts, said } from "./page-texts.ts";

const startMs = Date.parse("2026-11-30T10:00:00Z");
const at = (second: number, draft: RecordDraft): RecordDraft => ({
  ...draft,
  timestamp: new Date(startMs + second * 1000).toISOString(),
});
const call = (id: string, name: string, args: object): object => ({ type: "toolCall", id, name, arguments: args });
const result = (toolCallId: string, text: string, details: object = {}): RecordDraft => ({
  type: "message",
  message: { role: "toolResult", toolCallId, content: text, details },
});

async function child(
  store: SessionStore,
  name: string,
  second: number,
  records: readonly RecordDraft[],
): Promise<void> {
  const entry = { sessionId: `s1.agent-${name}`, label: name, spawnedBy: pageRef.key };
  const ref = sessionRef({ key: `agent:main:${name}` });
  await store.save(ref, entry, { ifRevision: null, createdAtMs: startMs + second * 1000 });
  await store.append(ref, records);
}

const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

/** Two sub-agents of one message, which end in the other order, one that only its time tells, and one of no call. */
async function parentWithAgents(): Promise<SessionStore> {
  const store = createMemoryStore();
  await store.save(pageRef, { sessionId: "s1", label: "Parent" }, { ifRevision: null });
  await store.append(pageRef, [
    at(0, said("user", "Map the coast.")),
    at(
      10,
      said("assistant", [
        call("t0", "read", { path: "coast.txt" }),
        call("t1", "Task", { prompt: "Read every chart of the north." }),
        call("t2", "Task", { prompt: "Read every chart of the south." }),
      ]),
    ),
    at(30, result("t0", "rocks")),
    at(40, result("t2", "south done", { agentId: "southern" })),
    at(50, result("t1", "north done")),
    at(60, said("assistant", [call("t3", "research", { query: "tides" })])),
    at(90, result("t3", "tides done")),
  ]);
  await child(store, "northern", 12, [
    at(12, said("user", "Read every chart of the north.")),
    at(13, said("assistant", `The north has fog. The key is ${secret}.`)),
  ]);
  await child(store, "southern", 11, [at(11, said("user", "Go.")), at(14, said("assistant", "The south has sun."))]);
  await child(store, "tidal", 70, [
    at(70, said("user", "Tides?")),
    ...Array.from({ length: 520 }, (_, index) => at(71, said("assistant", `Tide ${index}.`))),
  ]);
  await child(store, "lost", 900, [at(900, said("user", "Nobody called me."))]);
  return store;
}

const parts = ["rocks", "The north has fog", "north done", "The south has sun", "south done", "Tide 0.", "Tide 498."];

describe("the sub-agents of a transcript", () => {
  it("stand under the calls that started them, with their own turns and without secrets", async () => {
    const { texts, replaced } = await pageTexts(await parentWithAgents(), { to: "html" });
    const [html = ""] = texts;
    const order = ["The north has fog", "The south has sun", "Tide 0.", "Tide 498."].map((text) => html.indexOf(text));
    expect(order).toEqual(order.toSorted((one, other) => one - other));
    expect(order[0]).toBeGreaterThan(0);
    expect(html.indexOf("north done")).toBeLessThan(html.indexOf("The north has fog"));
    expect(html.indexOf("The north has fog")).toBeLessThan(html.indexOf("south done"));
    expect(html.split('<details class="agent">')).toHaveLength(4);
    expect(html).toContain("21 records more in the session agent:main:tidal, not in this file");
    expect(html).toContain("<dd>3 under their calls, 1 without a known call left out</dd>");
    expect(html).not.toContain("Tide 499.");
    expect(html).not.toContain("Nobody called me");
    expect(html).not.toContain(secret);
    expect(replaced).toEqual([{ what: "GitHub token", count: 1 }]);
    // Chapters and anchors are those of the session alone.
    const anchors = [...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
    expect(new Set(anchors).size).toBe(anchors.length);
    expect(html.match(/<section id="c\d+">/g)).toHaveLength(1);
  });

  it("stand in Markdown, and are left out with their calls at the level of words", async () => {
    const store = await parentWithAgents();
    const [markdown = ""] = (await pageTexts(store, { to: "markdown" })).texts;
    for (const text of parts) expect(markdown).toContain(text);
    expect(markdown.match(/^## \d+\./gm)).toHaveLength(1);
    expect(markdown).toContain("**End of sub-agent** northern");
    const [words = ""] = (await pageTexts(store, { to: "html", level: "words" })).texts;
    expect(words).not.toContain("Sub-agent");
  });
});

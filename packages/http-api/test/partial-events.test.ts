import type { Clock } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import { type ApiCaller, createSessionApi } from "@throughline/http-api";
import { expect, it } from "vitest";
import { damagedStore, partial, ref } from "./damaged-partial.ts";

const ada: ApiCaller = { id: "ada", namespace: "", agents: "*", scopes: ["read", "write"] };
/** Waits a fiftieth of each time. */
const quickClock: Clock = { nowMs: systemClock.nowMs, sleep: (ms, signal) => systemClock.sleep(ms / 50, signal) };

it("an open reply that is damaged counts as no text, and its stream goes on", async () => {
  await using store = await damagedStore();
  await expect(store.partials?.read(ref)).rejects.toMatchObject({ code: "STORE_CORRUPT" });

  const api = createSessionApi({ store, clock: quickClock });
  const request = new Request("http://localhost/api/v1/sessions/agent%3Amain%3Aa/events?partial=true");
  const { body } = await api.fetch(request, { caller: ada });
  if (body === null) throw new Error("The stream has no body.");
  let text = "";
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    text += piece;
    if (text.includes("event: partial")) break;
    if (!text.includes("event: record"))
      await store.append(ref, [{ type: "note" }], { turn: { action: "within", fence: 1 } });
    else await store.partials?.write(ref, { ...partial, text: "other words", updatedMs: 2 });
  }
  await api.close();
  expect(text).toContain('"text":"other words"');
  expect(text).not.toContain("first");
});

it("an open reply that is damaged does not keep a reader from the end of its turn", async () => {
  await using store = await damagedStore();
  const api = createSessionApi({ store, clock: quickClock });
  const request = new Request("http://localhost/api/v1/sessions/agent%3Amain%3Aa/turn/events");
  const { body } = await api.fetch(request, { caller: ada });
  if (body === null) throw new Error("The stream has no body.");
  const names: string[] = [];
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    names.push(...Array.from(piece.matchAll(/^event: (.*)$/gm), ([, name = ""]) => name));
    if (names.length === 1) await store.append(ref, [{ type: "note" }], { turn: { action: "close", fence: 1 } });
  }
  await api.close();
  expect(names).toEqual(["text.snapshot", "turn.interrupted"]);
});

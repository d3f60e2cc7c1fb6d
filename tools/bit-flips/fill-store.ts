import { type AppendDraft, redactRecords, type SessionRef, type SessionStore } from "../../packages/core/src/index.ts";
import { fillFacets } from "./facet-reads.ts";

const refOf = (name: string): SessionRef => ({ namespace: "", agentId: "main", key: `agent:main:cli:direct:${name}` });

function message(role: "user" | "assistant", content: string): AppendDraft {
  return { type: "message", message: { role, content } };
}

/** A store with something of everything: forks, an archive, imported lines, long payloads, entries, tombstones. */
export async function fillStore(store: SessionStore): Promise<void> {
  const begin = async (name: string, fields: Readonly<Record<string, unknown>> = {}): Promise<SessionRef> => {
    await store.save(
      refOf(name),
      { sessionId: `${name.padStart(8, "0")}-0000-4000-8000-000000000001`, ...fields },
      {
        ifRevision: null,
      },
    );
    return refOf(name);
  };
  const turns = async (ref: SessionRef, count: number, text: string): Promise<void> => {
    for (let turn = 0; turn < count; turn++)
      await store.append(
        ref,
        [
          message("user", `${text} ${turn} ${"q".repeat(turn * 17)}`),
          message("assistant", `answer ${turn} to ${text}`),
        ],
        { entry: { label: `${text} ${turn}`, count: turn }, ...(turn % 3 === 0 ? { idempotencyKey: `k${turn}` } : {}) },
      );
  };
  const first = await begin("a", { model: "one", provider: "two" });
  await turns(first, 30, "first");
  const second = await begin("b");
  await turns(second, 8, "second");
  await store.fork?.fork(first, refOf("fa"), { sessionId: "000000fa-0000-4000-8000-000000000001", atSeq: 20 });
  await turns(refOf("fa"), 3, "fork");
  await store.fork?.fork(refOf("fa"), refOf("fb"), { sessionId: "000000fb-0000-4000-8000-000000000001" });
  await turns(refOf("fb"), 2, "fork of the fork");
  const imported = await begin("c");
  const line = (id: string, text: string) =>
    `{ "type":"message", "id":"${id}", "parentId":null, "timestamp":"2026-01-01T00:00:00.000Z", "message":{"role":"user","content":"${text}"}, "odd": 1.0}`;
  for (let index = 0; index < 6; index++) {
    const source = line(`imported-${index}`, `line ${index}`);
    await store.append(imported, [{ ...JSON.parse(source), source }]);
  }
  const large = await begin("d");
  await store.append(large, [message("user", "large ".repeat(50_000)), message("assistant", "short")]);
  const archived = await begin("e");
  await turns(archived, 4, "archived");
  await store.move(archived, { kind: "archive" });
  await turns(await begin("e", { sessionId: "000000ee-0000-4000-8000-000000000001" }), 2, "after the archive");
  const redacted = await begin("f");
  const { records } = await store.append(redacted, [message("user", "secret"), message("assistant", "kept")]);
  await redactRecords(store, redacted, [records[0]?.id ?? ""], { reason: "test" });
  for (let index = 0; index < 12; index++) await begin(`s${index}`, { index });
  await fillFacets(store);
}

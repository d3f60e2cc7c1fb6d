import { sessionRef, type PartialReply, type SessionRef, type SessionStore } from "../packages/core/src/index.ts";

/** The session whose open turn the partials belong to. */
const ref: SessionRef = sessionRef({ key: "agent:main:partials" });

/** Every tenth begins anew; the others add to the one before. */
function textOf(index: number): string {
  const first = index - (index % 10);
  return Array.from({ length: index - first + 1 }, (_, each) => `${first + each} ${"words ".repeat(20)}`).join("");
}

/**
 * Opens a turn, which ends that of an earlier life, and gives what writes the next partial. Both say what was acknowledged:
 * the question as `turn:<seq>:<id>`, a partial as `partial:<fence>-<index>`.
 */
export async function openPartialTurn(
  store: SessionStore,
): Promise<{ readonly word: string; readonly writeNext: () => Promise<string> }> {
  const state = (await store.load(ref)) ?? (await store.save(ref, { sessionId: "partials" }, { ifRevision: null }));
  const fence = state.head.fence + 1;
  const turnId = `turn-${fence}`;
  // Its lease is over at once: the next life takes over.
  const turn = { action: "open", turnId, owner: turnId, leaseUntilMs: Date.now(), fence } as const;
  const question = { type: "message", message: { role: "user", content: `question ${fence}` } };
  const { records } = await store.append(ref, [question], { turn });
  let index = 0;
  return {
    word: records.map(({ seq, id }) => `turn:${seq}:${id}`).join(" "),
    writeNext: async () => {
      const partial: PartialReply = {
        v: 1,
        sessionId: state.sessionId,
        turnId,
        fence,
        step: 1,
        attempt: 0,
        afterSeq: records.at(-1)?.seq ?? 0,
        provider: "provider",
        api: "api",
        model: null,
        text: textOf(index),
        updatedMs: index,
      };
      await store.partials?.write(ref, partial);
      return `partial:${fence}-${index++}`;
    },
  };
}

/**
 * Those of the words that the partial in the store proves: each partial replaces the one before it.
 * @throws {Error} when the partial is not one that was written, and what reading a damaged one throws
 */
export async function provenPartials(store: SessionStore, words: readonly string[]): Promise<readonly string[]> {
  if ((await store.load(ref)) === null) return [];
  const partial = (await store.partials?.read(ref)) ?? null;
  if (partial === null) return [];
  const { fence, updatedMs: index, text } = partial;
  if (text !== textOf(index))
    throw new Error(`partial ${fence}-${index} is not as it was written: ${text.slice(0, 200)}`);
  return words.filter((word) => {
    const [kind, said = ""] = word.split(":");
    const [saidFence, saidIndex] = said.split("-").map(Number);
    return kind === "partial" && saidFence === fence && saidIndex !== undefined && saidIndex <= index;
  });
}

/** The questions of all turns, as they were said. */
export async function turnWords(store: SessionStore): Promise<readonly string[]> {
  if ((await store.load(ref)) === null) return [];
  const words: string[] = [];
  for await (const { records } of store.read(ref)) for (const { seq, id } of records) words.push(`turn:${seq}:${id}`);
  return words;
}

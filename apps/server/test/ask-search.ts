import type { Serving } from "./serving.ts";

/** Asks each route of the search by words and by meaning once, about the first record of a session. */
export async function askSearch({ ask }: Pick<Serving, "ask">, key: string): Promise<void> {
  await ask("GET", `/search?q=harbour`);
  await ask("POST", `/search`, { body: { q: "harbour" } });
  await ask("GET", `/search/lag`);
  const model = "kit/one@4";
  const vector = Buffer.from(Float32Array.of(1, 0, 0, 0).buffer).toString("base64");
  const pending = await ask("GET", `/vectors/pending?model=${model}`);
  const [range] = pending.body["ranges"] as readonly { readonly mark: string }[];
  const vectors = [{ firstSeq: 1, lastSeq: 1, part: 0, vector }];
  const body = { model, mark: range?.mark ?? "", fromSeq: 1, toSeq: 1, resumeSeq: 1, vectors };
  await ask("PUT", `/sessions/${key}/vectors`, { body });
  await ask("POST", `/vectors/nearest`, { body: { model, vector } });
  await ask("DELETE", `/vectors`);
}

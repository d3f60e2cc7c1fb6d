import { createServer, type IncomingMessage, type ServerResponse } from "node:http";

/** How the server answers: as it should, or with one of the faults that servers have. */
export type EmbeddingFault =
  | "none"
  | "429"
  | "500"
  | "nan"
  | "zero"
  | "short"
  | "fewer"
  | "twice"
  | "html"
  | "reset"
  | "redirect"
  | "slow";

export interface ReceivedTexts {
  readonly path: string;
  readonly authorization: string | null;
  readonly body: Readonly<Record<string, unknown>>;
}

const dimensions = 64;
/** The words of a row mean the same. Words of no row have directions of their own, which count less. */
const concepts: readonly (readonly string[])[] = [
  ["bicycle", "bicycles", "bike", "bikes", "fahrrad", "cycling"],
  ["rent", "rented", "hire", "hired", "lease", "miete", "leihen"],
  ["doctor", "physician", "surgeon", "arzt"],
  ["crash", "crashed", "broke", "failure", "outage"],
  ["database", "postgres", "sqlite", "storage"],
  ["dinner", "supper", "meal", "restaurant"],
  ["password", "credential", "secret"],
  ["deadline", "due", "deliver", "delivery"],
];

let fault: EmbeddingFault = "none";
let slowMs = 0;
let mostCharacters = Infinity;
const received: ReceivedTexts[] = [];

function vectorOf(text: string): number[] {
  const vector = Array.from({ length: dimensions }, () => 0.001);
  for (const word of text.toLowerCase().split(/[^\p{L}\p{N}]+/u)) {
    if (word.length < 3) continue;
    const concept = concepts.findIndex((words) => words.includes(word));
    const place = concept >= 0 ? concept : concepts.length + (hashOf(word) % (dimensions - concepts.length));
    vector[place] = (vector[place] ?? 0) + (concept >= 0 ? 3 : 0.3);
  }
  const norm = Math.hypot(...vector);
  return vector.map((value) => value / norm);
}

function hashOf(word: string): number {
  let hash = 2_166_136_261;
  for (const character of word) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 16_777_619) >>> 0;
  return hash;
}

function send(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
}

function faulty(vectors: number[][]): number[][] {
  const changed = vectors.map((vector) => [...vector]);
  const [first] = changed;
  if (first === undefined) return changed;
  if (fault === "nan") (first as unknown[])[3] = null;
  if (fault === "zero") first.fill(0);
  if (fault === "short") first.pop();
  if (fault === "fewer") changed.pop();
  return changed;
}

/** Answers the faults that need no vectors; false when the request is to be answered. */
function isFaultAnswered(response: ServerResponse): boolean {
  if (fault === "429") send(response, 429, { error: { message: "Rate limit reached." } }, { "retry-after": "7" });
  else if (fault === "500") send(response, 500, { error: { message: "The model crashed." } });
  else if (fault === "html") response.writeHead(200, { "content-type": "text/html" }).end("<html>Sign in</html>");
  else if (fault === "reset") response.destroy();
  else if (fault === "redirect") response.writeHead(307, { location: "http://127.0.0.1:1/elsewhere" }).end();
  else return false;
  return true;
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = JSON.parse(Buffer.concat(chunks).toString() || "{}") as Record<string, unknown>;
  const path = request.url ?? "/";
  if (path === "/received") return send(response, 200, received.splice(0));
  if (path === "/control") {
    ({
      fault = "none",
      slowMs = 0,
      mostCharacters = Infinity,
    } = body as Partial<{ fault: EmbeddingFault; slowMs: number; mostCharacters: number }>);
    return send(response, 200, {});
  }
  received.push({ path, authorization: request.headers.authorization ?? null, body });
  if (isFaultAnswered(response)) return undefined;
  if (slowMs > 0) await new Promise((resolve) => setTimeout(resolve, slowMs));
  const texts = body["input"] as readonly string[];
  if (texts.some((text) => text.length > mostCharacters))
    return send(response, 400, { error: { message: "the input length exceeds the context length" } });
  const vectors = faulty(texts.map(vectorOf));
  if (path === "/api/embed") return send(response, 200, { model: body["model"], embeddings: vectors });
  // The protocol allows any order.
  const data = vectors.map((embedding, index) => ({
    object: "embedding",
    index: fault === "twice" ? 0 : index,
    embedding,
  }));
  return send(response, 200, { object: "list", data: data.toReversed(), model: body["model"] });
}

const server = createServer((request, response) => {
  answer(request, response).catch(() => response.destroy());
});
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  process.send?.({ port: typeof address === "object" ? address?.port : null });
});
process.on("disconnect", () => process.exit(0));

import { isFields, type Fields } from "@throughline/core/internal";
import { asText } from "../as-text.ts";
import { createHash } from "node:crypto";
import { uiMessagesOf } from "../ai-sdk/write-ui-messages.ts";
import { documentWriter } from "../document-writer.ts";
import type { FormatWriter, WriteOptions, WrittenSession } from "../format-writer.ts";

/** The documents have the form of this version, so they state it. */
const writtenVersion = "1.18.33";

/** The writer renders the messages that a model would get now, in the form of `opencode export`. */
export const opencodeWriter: FormatWriter = {
  ...documentWriter(
    (session) => ({ head: `{"info":${JSON.stringify(infoOf(session))},"messages":[`, tail: "\n]}\n" }),
    (session, options) => new OpencodeDocument(session, options).all(),
  ),
  sessionId: writtenId,
};

/** The program refuses a session whose id has another form. */
function writtenId({ sessionId, createdAtMs }: Pick<WrittenSession, "sessionId" | "createdAtMs">): string {
  return sessionId.startsWith("ses_") ? sessionId : idOf("ses", createdAtMs, 0, sessionId);
}

function infoOf(session: WrittenSession): Fields {
  const { cwd, label, title, createdAtMs } = session;
  const sessionId = writtenId(session);
  return {
    id: sessionId,
    slug: sessionId.slice(-8).toLowerCase(),
    projectID: "global",
    directory: cwd,
    title: label ?? title ?? "Imported session",
    version: writtenVersion,
    time: { created: createdAtMs, updated: createdAtMs },
  };
}

/** The program's ids sort by time and then by number, so these do too. */
function idOf(prefix: string, atMs: number, count: number, text: string): string {
  const time = (BigInt(Math.max(0, Math.trunc(atMs))) * 4096n + BigInt(count % 4096)).toString(16);
  const letters = createHash("sha256").update(text).digest("hex").slice(0, 14);
  return `${prefix}_${time.padStart(12, "0").slice(-12)}${letters}`;
}

class OpencodeDocument {
  readonly #session: WrittenSession;
  readonly #options: WriteOptions;
  readonly #sessionId: string;
  #atMs: number;
  #count = 0;
  #promptId = "";

  constructor(session: WrittenSession, options: WriteOptions) {
    this.#session = session;
    this.#options = options;
    this.#sessionId = writtenId(session);
    this.#atMs = session.createdAtMs;
  }

  *all(): Generator<Fields | undefined> {
    if (this.#sessionId !== this.#session.sessionId)
      this.#options.onLoss({ what: "changed", kind: "id of the session", recordId: null });
    for (const message of uiMessagesOf(this.#session, this.#options)) {
      if (message === undefined) {
        yield;
        continue;
      }
      const { role, metadata, parts } = message;
      const stated = isFields(metadata) ? metadata : {};
      const createdMs = Date.parse(asText(stated["createdAt"]));
      if (Number.isFinite(createdMs)) this.#atMs = Math.max(this.#atMs, createdMs);
      const given = parts as readonly Fields[];
      if (role === "assistant") yield* this.#replies(given, stated);
      else yield this.#prompt(given, role === "user");
    }
  }

  #prompt(parts: readonly Fields[], isTyped: boolean): Fields {
    const id = (this.#promptId = this.#id("msg"));
    const model = { providerID: "unknown", modelID: "unknown" };
    const info = { ...this.#place(id), role: "user", time: { created: this.#atMs }, agent: "build", model };
    return { info, parts: parts.flatMap((part) => this.#part(part, id, isTyped ? {} : { synthetic: true })) };
  }

  /** The program stores one message for each call of the model. */
  *#replies(parts: readonly Fields[], { model, provider }: Fields): Generator<Fields> {
    const steps: Fields[][] = [];
    for (const part of parts) {
      if (part["type"] === "step-start" || steps.length === 0) steps.push([]);
      steps.at(-1)?.push(part);
    }
    for (const step of steps) {
      const id = this.#id("msg");
      const isCalling = step.some(({ type }) => type === "dynamic-tool");
      const { cwd } = this.#session;
      const info = {
        ...this.#place(id),
        parentID: this.#promptId,
        role: "assistant",
        mode: "build",
        agent: "build",
        path: { cwd, root: "/" },
        cost: 0,
        tokens: { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } },
        modelID: typeof model === "string" ? model : "unknown",
        providerID: typeof provider === "string" ? provider : "unknown",
        time: { created: this.#atMs, completed: this.#atMs },
        finish: isCalling ? "tool-calls" : "stop",
      };
      yield { info, parts: step.flatMap((part) => this.#part(part, id, {})) };
    }
  }

  #part(part: Fields, messageID: string, more: Fields): readonly Fields[] {
    const place = { ...this.#place(this.#id("prt")), messageID };
    const time = { start: this.#atMs, end: this.#atMs };
    const { type, text, toolName, toolCallId, state, input, output, errorText, mediaType, url, filename } = part;
    const metadata = part["providerMetadata"];
    switch (type) {
      case "step-start":
        return [{ ...place, type }];
      case "text":
        return [{ ...place, type, text, ...more }];
      case "reasoning":
        return [{ ...place, type, text, time, ...(metadata === undefined ? {} : { metadata }) }];
      case "file":
        return [{ ...place, type, mime: mediaType, url, ...(filename === undefined ? {} : { filename }) }];
      case "dynamic-tool": {
        const answered =
          state === "output-available"
            ? { status: "completed", input, output, title: "", metadata: {}, time }
            : { status: "error", input, error: errorText ?? "", time };
        return [{ ...place, type: "tool", tool: toolName, callID: toolCallId, state: answered }];
      }
      default:
        return [];
    }
  }

  #place(id: string): Fields {
    return { id, sessionID: this.#sessionId };
  }

  #id(prefix: string): string {
    this.#count += 1;
    // The number restarts after 4096 ids, so the time advances by a millisecond to keep the order.
    if (this.#count % 4096 === 0) this.#atMs += 1;
    return idOf(prefix, this.#atMs, this.#count, `${this.#sessionId} ${this.#count}`);
  }
}

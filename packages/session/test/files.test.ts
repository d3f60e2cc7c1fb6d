import { createHash } from "node:crypto";
import type { SessionStore } from "@throughline/core";
import { runSteps } from "@throughline/core/internal";
import { createProviderSimulator } from "@throughline/testing";
import { createHistory } from "@throughline/history";
import { createSessions, explainCalls, openTurn, rebuildCall } from "@throughline/session";
import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, expectTypeOf, it } from "vitest";
import { readCall, rebuildSteps } from "../src/internal.ts";
import { providerCases } from "./provider-cases.ts";
import { createFixture, echoTool, key, modelId } from "./session-fixture.ts";

const pdf = Buffer.concat([Buffer.from("%PDF-1.7\n"), Buffer.alloc(3000, "x")]);
const pdfBase64 = pdf.toString("base64");
const ref = { namespace: "", agentId: "main", key };

async function* pieces(bytes: Uint8Array, size = 1000): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += size) yield bytes.subarray(at, at + size);
}

function withoutFiles(store: SessionStore): SessionStore {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = name === "files" ? undefined : Reflect.get(target, name, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

describe("sessions.files", () => {
  it("keeps bytes, a Blob and a stream, which are one file with one block", async () => {
    const { sessions } = createFixture();
    const options = { mediaType: "application/pdf", name: "report.pdf" };
    const sha256 = createHash("sha256").update(pdf).digest("hex");
    for (const content of [pdf, new Blob([pdf]), pieces(pdf), new Blob([pdf]).stream()]) {
      const file = await sessions.files.put(content, options);
      expect(file).toEqual({
        id: sha256,
        bytes: pdf.length,
        sha256,
        block: { type: "file", fileId: sha256, ...options, bytes: pdf.length },
      });
    }
    expect(Buffer.concat(await Array.fromAsync(sessions.files.get(sha256)))).toEqual(pdf);
    expect(Buffer.concat(await Array.fromAsync(sessions.files.get(sha256, { from: 1, to: 4 }))).toString()).toBe("PDF");
    expect([await sessions.files.delete(sha256), await sessions.files.delete(sha256)]).toEqual([true, false]);
    await expect(Array.fromAsync(sessions.files.get(sha256))).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
  });

  it("takes undefined for what a program may not know of a file", async () => {
    const { sessions } = createFixture();
    const unknown = { mediaType: undefined, name: undefined, maxBytes: undefined, signal: undefined };
    const { id, block } = await sessions.files.put(pdf, unknown);
    expect(block).toEqual({ type: "file", fileId: id, bytes: pdf.length });
  });

  it("refuses other content, other options, and a file over the bound", async () => {
    const { sessions } = createFixture();
    await expect(sessions.files.put("text" as never)).rejects.toMatchObject({ code: "INPUT_INVALID" });
    await expect(sessions.files.put(pdf, { type: "x" } as never)).rejects.toMatchObject({ code: "INPUT_INVALID" });
    await expect(sessions.files.put(pdf, { maxBytes: 100 })).rejects.toMatchObject({ code: "FILE_TOO_LARGE" });
  });

  it("says of a store without files that it has none", async () => {
    const { sessions } = createFixture({ store: withoutFiles(createMemoryStore()) });
    await expect(sessions.files.put(pdf)).rejects.toMatchObject({ code: "CAPABILITY_UNSUPPORTED" });
    const session = await sessions.open(key);
    const block = { type: "file", fileId: "0".repeat(64) };
    await expect(session.runTurn([block])).rejects.toMatchObject({ code: "CAPABILITY_UNSUPPORTED" });
  });
});

describe("openTurn with files", () => {
  it("reads the bytes of what it returns, so that a history sends what runTurn sends", async () => {
    const { sessions, store } = createFixture();
    const { block } = await sessions.files.put(pdf, { mediaType: "application/pdf", name: "report.pdf" });
    const late = await sessions.files.put(Buffer.from("a,b\n"), { mediaType: "text/csv", name: "late.csv" });
    const missing = { type: "file", fileId: "0".repeat(64), mediaType: "application/pdf", name: "gone.pdf" };
    const drafts = [{ type: "message", message: { role: "user", content: [block, missing] } } as const];
    await using turn = await openTurn(store, key, { drafts, idempotencyKey: "k" });
    const history = createHistory("anthropic", { files: turn.files });
    history.append(turn.records);
    const more = [{ type: "message", message: { role: "user", content: [late.block] } } as const];
    history.append(await turn.append(more));
    const sent = JSON.stringify(history.render().messages);
    expect(sent).toContain(pdfBase64);
    expect(sent).toContain("a,b");
    expect(sent).toContain("[file gone.pdf, application/pdf: not sent: the store does not have it, or it is damaged]");
    await turn.close();
    const again = await openTurn(store, key, { drafts, idempotencyKey: "k" });
    expect([again.isClosed, again.files(block.fileId)?.byteLength]).toEqual([true, pdf.length]);
  });
});

describe("a message with a file", () => {
  it("is counted, and its file is deleted, with the sessions of its user", async () => {
    const { sessions } = createFixture();
    const { id, block } = await sessions.files.put(pdf);
    const session = await sessions.open(key);
    await session.runTurn([{ type: "text", text: "Summarize it." }, block]);
    await session.runTurn([block]);
    await session.close();
    expect((await sessions.deleteUser({ keyPrefix: key }, { dryRun: true })).counts.files).toBe(1);
    expect((await sessions.deleteUser({ keyPrefix: key })).counts.files).toBe(1);
    await expect(Array.fromAsync(sessions.files.get(id))).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
  });

  it("is in the transcript as a block with its name", async () => {
    const { sessions } = createFixture();
    const { block, id } = await sessions.files.put(pdf, { mediaType: "application/pdf", name: "report.pdf" });
    const session = await sessions.open(key);
    // What another program holds in a block of the same type is not a stored file.
    await session.runTurn([{ type: "text", text: "Summarize it." }, block, { type: "file", data: "AAAA" }]);
    const [asked] = (await session.transcript()).messages;
    expect(asked?.content.map(({ type }) => type)).toEqual(["text", "file", "unknown"]);
    const file = asked?.content.find((each) => each.type === "file");
    expectTypeOf(file?.name).toEqualTypeOf<string | undefined>();
    expect(file).toEqual(block);
    expect(file?.fileId).toBe(id);
  });

  it("holds the id in the log and the bytes in each request, also of the next process", async () => {
    const { sessions, store, model, records } = createFixture();
    const { block } = await sessions.files.put(pdf, { mediaType: "application/pdf", name: "report.pdf" });
    const session = await sessions.open(key);
    await session.runTurn([{ type: "text", text: "Summarize it." }, block]);
    await session.runTurn("And now?");
    await sessions.close();
    const again = createSessions({ store, model: { chat: model, modelId, windowTokens: 200_000 } });
    await (await again.open(key)).runTurn("And then?");
    expect(model.requests).toHaveLength(3);
    for (const { messages } of model.requests) expect(JSON.stringify(messages)).toContain(pdfBase64);
    expect(JSON.stringify(await records())).not.toContain(pdfBase64.slice(0, 200));
    expect(JSON.stringify(await records())).toContain(JSON.stringify(block));
  });

  it("is refused before it is stored when the file is not there", async () => {
    const { sessions, records } = createFixture();
    const session = await sessions.open(key);
    const missing = { type: "file", fileId: "0".repeat(64) };
    await expect(session.runTurn([missing])).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
    expect(await records()).toEqual([]);
  });

  it("goes on when its file was deleted, with a line in the place of the file", async () => {
    const { sessions, store, model } = createFixture();
    const { id, block } = await sessions.files.put(pdf, { mediaType: "application/pdf", name: "report.pdf" });
    const session = await sessions.open(key);
    await session.runTurn([block]);
    await sessions.close();
    const again = createSessions({ store, model: { chat: model, modelId, windowTokens: 200_000 } });
    await again.files.delete(id);
    const { text } = await (await again.open(key)).runTurn("And now?");
    expect(text).toBe("ok");
    expect(JSON.stringify(model.requests.at(-1))).toContain("[file report.pdf, application/pdf, 3.0 kB: not sent: ");
  });

  it("may be the result of a tool", async () => {
    const fixture = createFixture({
      tools: [{ ...echoTool, run: async () => ({ content: [(await fixture.sessions.files.put(pdf)).block] }) }],
    });
    const { sessions, model } = fixture;
    model.push({ calls: [{ id: "c1", name: "echo", arguments: { text: "x" } }] }, "done");
    await (await sessions.open(key)).runTurn("Fetch it.");
    expect(JSON.stringify(model.requests[1]?.messages)).toContain(pdfBase64);
  });

  it("is rebuilt byte for byte as it was sent", async () => {
    const { sessions, store, model, records } = createFixture();
    const { block } = await sessions.files.put(pdf, { mediaType: "application/pdf" });
    await (await sessions.open(key)).runTurn([block]);
    const [call] = explainCalls(await records());
    const head = (await records()).find(({ id }) => id === call?.callId);
    const found = await readCall(store, ref, head ?? { seq: 0, id: "" });
    const files = await found!.loadFiles();
    const prefix = { system: "Be kind.", tools: [echoTool.definition], files };
    const { messages } = runSteps(rebuildSteps(found!.records, found!.call.facts, prefix));
    expect(JSON.stringify(messages)).toBe(JSON.stringify(model.requests[0]?.messages));
    const without = rebuildCall(found!.records, found!.call.facts, { system: "Be kind.", tools: [] });
    expect(JSON.stringify(without.messages)).toContain("not sent");
  });

  it("of 20 MB is sent, and one of 30 MB is left out with a reason", async () => {
    const { sessions, model } = createFixture();
    const session = await sessions.open(key);
    for (const megabytes of [20, 30]) {
      const large = Buffer.concat([Buffer.from("%PDF-1.7\n"), Buffer.alloc(megabytes * 1_000_000, megabytes)]);
      const { block } = await sessions.files.put(pieces(large, 1_000_000), {
        mediaType: "application/pdf",
        name: `${megabytes}.pdf`,
      });
      await session.runTurn([block]);
    }
    const [first, second] = model.requests.map(({ messages }) => JSON.stringify(messages));
    expect(first!.length).toBeGreaterThan(26_000_000);
    expect(second!.length - first!.length).toBeLessThan(1000);
    expect(second).toContain("[file 30.pdf, application/pdf, 30.0 MB: not sent: ");
  });

  it.each(providerCases)("reaches $name through its SDK", async ({ create, modelId: id, messagesOf }) => {
    const simulator = createProviderSimulator({
      models: { "*": { windowTokens: 200_000 } },
      fallback: () => "A summary.",
    });
    await simulator.start();
    const store = createMemoryStore();
    const sessions = createSessions({ store, model: { chat: create(simulator), modelId: id, windowTokens: 100_000 } });
    const { block } = await sessions.files.put(pdf, { mediaType: "application/pdf", name: "report.pdf" });
    const session = await sessions.open(key);
    await session.runTurn([{ type: "text", text: "Summarize it." }, block]);
    const sent = JSON.stringify(messagesOf(simulator.requests.at(-1)!));
    if (id === "qwen3") expect(sent).toContain("not sent: ollama takes no application/pdf");
    else expect(sent).toContain(pdfBase64);
    // The estimate counts a document, not the characters of its bytes.
    expect((await session.messages()).gauge.tokens).toBeLessThan(3000);
    await simulator.close();
  });
});

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createProviderSimulator, type ProviderSimulator } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ChatServer, startChat } from "./chat-server.ts";

let folder = "";
let provider: ProviderSimulator;
let server: ChatServer;
let url = "";

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "throughline-example-"));
  provider = createProviderSimulator({
    fallback: ({ body }) => {
      const { messages } = body as { readonly messages: readonly unknown[] };
      return { kind: "answer", content: `Answer ${messages.length} to all.`, eventDelayMs: 30 };
    },
  });
  await provider.start();
  await start();
});
afterEach(async () => {
  await stop("SIGKILL");
  await provider.close();
  rmSync(folder, { recursive: true, force: true });
});

async function start(): Promise<void> {
  server = await startChat(folder, provider);
  ({ url } = server);
}

const stop = (signal: NodeJS.Signals): Promise<void> => server.stop(signal);

interface Shown {
  readonly recordId: string;
  readonly text: string;
  readonly branches: { readonly position: number; readonly count: number } | null;
}

interface Page {
  readonly messages: readonly Shown[];
  readonly approvals: readonly { readonly callId: string; readonly tool: string }[];
  readonly cutOff: string;
}

class User {
  #cookie = "";

  async #fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const response = await fetch(url + path, { ...init, headers: { cookie: this.#cookie } });
    this.#cookie = response.headers.get("set-cookie")?.split(";")[0] ?? this.#cookie;
    return response;
  }

  put(name: string, type: string, bytes: Uint8Array): Promise<Response> {
    return this.#fetch(`/files?name=${name}`, { method: "POST", body: new Blob([Uint8Array.from(bytes)], { type }) });
  }

  turn(text: unknown, id: unknown): Promise<Response> {
    return this.send(JSON.stringify({ text, id }));
  }

  send(body: string): Promise<Response> {
    return this.#fetch("/turns", { method: "POST", body });
  }

  async post(path: string, body: object = {}): Promise<string> {
    const response = await this.#fetch(path, { method: "POST", body: JSON.stringify(body) });
    return `${response.status} ${await response.text()}`;
  }

  async shown(): Promise<readonly Shown[]> {
    return (await this.page()).messages;
  }

  async page(): Promise<Page> {
    return (await (await this.#fetch("/messages")).json()) as Page;
  }

  attach(): Promise<Response> {
    return this.#fetch("/turn");
  }

  async messages(): Promise<readonly string[]> {
    return (await this.shown()).map(({ text }) => text);
  }

  forge(): void {
    this.#cookie = this.#cookie.replace(/user=./, (start) => (start.endsWith("0") ? "user=1" : "user=0"));
  }
}

const words = Array.from({ length: 80 }, (_, at) => `word${at} `).join("");

/** Reads a response until a text came, and leaves the rest. */
async function readUntil(response: Response, text: string): Promise<ReadableStreamDefaultReader<Uint8Array>> {
  const reader = response.body?.getReader();
  if (reader === undefined) throw new Error("no body");
  for (let heard = ""; !shownText(heard).includes(text);) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`The answer ended without ${JSON.stringify(text)}: ${heard}`);
    heard += new TextDecoder().decode(value);
  }
  return reader;
}

const shownText = (events: string): string =>
  textsOf(events)
    .map(({ text }) => text)
    .join("");

function textsOf(events: string): readonly { readonly name: string; readonly text: string }[] {
  return [...events.matchAll(/event: (text\.\w+)\ndata: (.*)\n\n/g)].map(([, name = "", text = ""]) => ({
    name,
    text: JSON.parse(text) as string,
  }));
}

describe("the web chat", () => {
  it(
    "streams answers, and shows each user their own conversation, also after the server was killed",
    { tags: ["slow"] },
    async () => {
      const [ada, ben] = [new User(), new User()];
      const events = await (await ada.turn("I am Ada.", "a1")).text();
      expect(events).toContain("event: text.delta");
      expect(events.trimEnd()).toMatch(/event: turn\.result\ndata: {"outcome":"done"}$/);
      await (await ben.turn("I am Ben.", "b1")).text();
      await (await ada.turn("I am Ada.", "a1")).text(); // sent again
      await stop("SIGKILL");
      await start();
      expect(await ada.messages()).toEqual(["I am Ada.", "Answer 1 to all."]);
      expect(await ben.messages()).toEqual(["I am Ben.", "Answer 1 to all."]);
      ada.forge();
      expect(await ada.messages()).toEqual([]);
      expect(provider.refusals).toEqual([]);
    },
  );

  it(
    "stores the answer although the reader leaves, and answers what a killed server was asked",
    { tags: ["slow"] },
    async () => {
      const ada = new User();
      expect(await ada.messages()).toEqual([]);
      const left = await ada.turn("Will you finish?", "a1");
      await left.body?.cancel();
      await expect.poll(() => ada.messages()).toEqual(["Will you finish?", "Answer 1 to all."]);
      const broken = (await ada.turn("And now?", "a2")).body?.getReader();
      for (let heard = ""; !heard.includes("text.delta");)
        heard += new TextDecoder().decode((await broken?.read())?.value);
      await stop("SIGKILL");
      await broken?.cancel().catch(() => undefined);
      await start();
      await (await ada.turn("Still there?", "a3")).text();
      expect((await ada.messages()).slice(2)).toEqual([
        "And now?",
        expect.stringMatching(/^Answer/),
        "Still there?",
        expect.stringMatching(/^Answer/),
      ]);
      expect(provider.refusals).toEqual([]);
    },
  );

  it("sends a file with a question, and shows its name", { tags: ["slow"] }, async () => {
    const user = new User();
    const pdf = Buffer.from("%PDF-1.7 report");
    const put = await user.put("report.pdf", "application/pdf", pdf);
    expect(put.status).toBe(200);
    const file = (await put.json()) as { readonly fileId: string };
    await (await user.send(JSON.stringify({ text: "What is in it?", id: "m1", ...file }))).text();
    expect(JSON.stringify(provider.requests.at(-1)?.body)).toContain(pdf.toString("base64"));
    expect((await user.page()).messages[0]?.text).toBe("What is in it? [report.pdf]");
    const gone = JSON.stringify({ text: "And this?", id: "m2", ...file, fileId: "0".repeat(64) });
    expect(await (await user.send(gone)).text()).toContain("turn.failed");
  });

  it("edits a question, answers again, and switches between the versions", { tags: ["slow"] }, async () => {
    const ada = new User();
    await (await ada.turn("Where is Oslo?", "a1")).text();
    const [question, first] = await ada.shown();
    const recordId = question?.recordId ?? "";
    expect(question?.branches).toBeNull();
    expect(await ada.post("/answers")).toMatch(/turn\.result/);
    expect(await ada.post("/edits", { recordId, text: "Where is Bergen?" })).toMatch(/turn\.result/);
    const [edited] = await ada.shown();
    expect(edited).toMatchObject({ text: "Where is Bergen?", branches: { position: 2, count: 2 } });
    expect(await ada.post("/switches", { recordId: edited?.recordId, to: "previous" })).toBe("204 ");
    expect((await ada.shown()).map(({ branches }) => branches?.position)).toEqual([1, 2]);
    expect(await ada.post("/switches", { recordId: first?.recordId, to: "previous" })).toBe("204 ");
    expect((await ada.shown()).map(({ branches }) => branches?.position)).toEqual([1, 2]);
    expect(await ada.post("/switches", { recordId: "gone", to: "next" })).toMatch(/^404 /);
    expect(await new User().post("/switches", { recordId, to: "next" })).toMatch(/^404 /);
    expect(await ada.post("/edits", { recordId })).toMatch(/^400 /);
    expect(await ada.post("/switches", {})).toMatch(/^400 /);
    expect(provider.refusals).toEqual([]);
  });

  it("shows a page that is reloaded the answer so far, and then the rest", { tags: ["slow"] }, async () => {
    const ada = new User();
    expect((await ada.attach()).status).toBe(204);
    provider.enqueue({ kind: "answer", content: words, eventDelayMs: 20 });
    const first = await ada.turn("Tell me.", "a1");
    const heard = await readUntil(first, "word20 ");
    const [again, other] = [await ada.attach(), await ada.attach()];
    await heard.cancel();
    for (const events of await Promise.all([again.text(), other.text()])) {
      const [snapshot, ...pieces] = textsOf(events);
      expect(snapshot?.name).toBe("text.snapshot");
      expect(snapshot?.text).toMatch(/^word0 [^]*word20 /);
      expect([snapshot, ...pieces].map((piece) => piece?.text).join("")).toBe(words);
      expect(events.trimEnd()).toMatch(/event: turn\.result\ndata: {"outcome":"done"}$/);
    }
    expect((await ada.attach()).status).toBe(204);
    expect(await new User().attach().then(({ status }) => status)).toBe(204);
    expect(await ada.messages()).toEqual(["Tell me.", words]);
  });

  it("shows what a killed server was writing, and continues it", { tags: ["slow"] }, async () => {
    const ada = new User();
    await ada.messages();
    provider.enqueue({ kind: "answer", content: words, eventDelayMs: 30 });
    const broken = await readUntil(await ada.turn("Tell me.", "a1"), "word60 ");
    await stop("SIGKILL");
    await broken.cancel().catch(() => undefined);
    await start();
    expect((await ada.attach()).status).toBe(204);
    const { cutOff, messages } = await ada.page();
    expect(messages.map(({ text }) => text)).toEqual(["Tell me."]);
    expect(words.startsWith(cutOff)).toBe(true);
    expect(cutOff).toContain("word20 ");
    await (await ada.turn("And then?", "a2")).text();
    const shown = await ada.page();
    expect(shown.cutOff).toBe("");
    expect(shown.messages.map(({ text }) => text)).toEqual([
      "Tell me.",
      cutOff,
      "Answer 3 to all.",
      "And then?",
      expect.stringMatching(/^Answer/),
    ]);
    expect(provider.refusals).toEqual([]);
  });

  it("asks before a tool runs, also when the server is killed meanwhile", { tags: ["slow"] }, async () => {
    const ada = new User();
    provider.enqueue({ kind: "answer", content: [{ type: "tool-call", name: "refund", input: { order: "A7" } }] });
    expect(await (await ada.turn("Pay it back.", "a1")).text()).toContain('{"outcome":"waiting"}');
    await stop("SIGKILL");
    await start();
    const { approvals } = await ada.page();
    expect(approvals).toMatchObject([{ tool: "refund", arguments: { order: "A7" } }]);
    const callId = approvals[0]?.callId;
    const stranger = new User();
    expect(await stranger.post("/approvals", { callId, answer: "allow" })).toContain("APPROVAL_DECIDED");
    expect(await ada.post("/approvals", { callId, answer: "allow" })).toMatch(/^200 [^]*{"outcome":"done"}/);
    expect(JSON.stringify(provider.requests.at(-1)?.body)).toContain("Order A7 is paid back.");
    expect(await ada.post("/approvals", { callId, answer: "refuse" })).toContain("APPROVAL_DECIDED");
    expect((await ada.page()).approvals).toEqual([]);
    expect(await ada.post("/approvals", {})).toMatch(/^400 /);
  });

  it.each([
    [undefined, "a1"],
    ["Hello", 7],
    [" ", "a1"],
    [null, null],
  ])("refuses a message of %j with the id %j", { tags: ["slow"] }, async (text, id) => {
    expect((await new User().turn(text, id)).status).toBe(400);
    expect(provider.requests).toEqual([]);
  });

  it.each([
    ["null", 400],
    ["{", 400],
    ["", 400],
    [`{"text":"${"x".repeat(100_000)}","id":"a1"}`, 413],
  ])("refuses the body %.10s with %i", { tags: ["slow"] }, async (body, status) => {
    expect((await new User().send(body)).status).toBe(status);
  });
});

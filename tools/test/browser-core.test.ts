import { createContext, Script } from "node:vm";
import { join } from "node:path";
import { build } from "esbuild";
import { describe, expect, it } from "vitest";
import { repositoryRoot } from "../find-files.ts";

/** What the programs give: plain JSON. */
type Answer = Readonly<Record<string, unknown>>;

/** Bundles a program for browsers; a module of Node among its imports is an error of the build. */
async function bundled(program: string, folder = "packages/history"): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: program, resolveDir: join(repositoryRoot, folder), loader: "ts" },
    bundle: true,
    write: false,
    platform: "browser",
    format: "iife",
    conditions: ["@throughline/source"],
    // Only the globals are replaced: fields and variables of these names stay.
    define: { Buffer: "buffer_of_node", process: "process_of_node", setImmediate: "immediate_of_node" },
    logLevel: "silent",
  });
  return outputFiles[0]?.text ?? "";
}

/** Runs a program where there are the globals of a web worker and nothing of Node's. */
function runAsWorker(code: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const globals = {
      AbortController,
      AbortSignal,
      Blob,
      DOMException,
      Event,
      EventTarget,
      Headers,
      Request,
      Response,
      TextDecoder,
      TextEncoder,
      URL,
      URLSearchParams,
      atob,
      btoa,
      clearTimeout,
      crypto,
      fetch,
      performance,
      queueMicrotask,
      setTimeout,
      structuredClone,
      postMessage: (answer: string) => resolve(JSON.parse(answer) as Answer),
      reportError: (error: unknown) => reject(error),
    };
    const context = createContext({ ...globals });
    new Script("globalThis.self = globalThis;").runInContext(context);
    new Script(code).runInContext(context, { timeout: 20_000 });
  });
}

const start = "(async () => {";
const end = "})().then((answer) => postMessage(JSON.stringify(answer)), reportError);";

describe("in a browser or a worker", () => {
  it("core makes keys, records, tools and typed errors without a module of Node", { tags: ["slow"] }, async () => {
    const code = await bundled(`
      import * as core from "@throughline/core";
      import { createRecordIds } from "@throughline/core/internal";
      ${start}
        const clock = { nowMs: () => 1_772_366_400_000, sleep: () => Promise.resolve() };
        let number = 7;
        const random = { uint32: () => number++, uuid: () => crypto.randomUUID() };
        const key = core.peerSessionKey({ agentId: "main", channel: "web", peerKind: "direct", peerId: "ada" });
        const tool = core.defineTool({
          name: "add",
          description: "Adds.",
          input: { type: "object", properties: { a: { type: "integer" }, b: { type: "integer" } }, required: ["a", "b"] },
          run: ({ a, b }) => String(a + b),
        });
        const call = { signal: new AbortController().signal, callId: "1" };
        let refusal = null;
        try {
          core.parseSessionKey("");
        } catch (error) {
          refusal = { isOurs: core.ThroughlineError.isInstance(error), code: error.code };
        }
        return {
          key,
          parsed: core.parseSessionKey(key).form,
          ref: core.sessionRef({ key }),
          id: createRecordIds({ clock, random }).next(),
          message: core.userMessage("Hi"),
          sum: await tool.run({ a: 2, b: 3 }, call),
          wrong: await tool.run({ a: 2, b: "3" }, call),
          refusal,
          nodeGlobals: ["process", "Buffer", "require", "setImmediate", "global"].filter((name) => name in globalThis),
        };
      ${end}`);
    const answer = await runAsWorker(code);
    expect(answer).toMatchObject({
      key: "agent:main:web:direct:ada",
      parsed: "agent",
      ref: { agentId: "main", namespace: "" },
      id: expect.stringMatching(/^1772366400000/),
      message: { type: "message", message: { role: "user" } },
      sum: "5",
      wrong: { isError: true, details: { reason: "arguments" } },
      refusal: { isOurs: true, code: "KEY_INVALID" },
      nodeGlobals: [],
    });
  });

  it("history builds a context from records and prints it", async () => {
    const code = await bundled(`
      import { buildContext, renderText } from "@throughline/history";
      ${start}
        const record = (id, parentId, role, text) => ({
          type: "message", id, parentId, timestamp: "2026-03-01T12:00:00.000Z",
          message: { role, content: [{ type: "text", text }] },
        });
        const records = [record("a", null, "user", "Paint the quay."), record("b", "a", "assistant", "Done.")];
        const stored = records.map((each, index) => ({
          seq: index + 1, id: each.id, parentId: each.parentId, type: each.type, side: false, record: each,
          tsMs: 0, storedAtMs: 0, bytes: 100, role: each.message.role, toolName: null,
        }));
        const context = buildContext(stored);
        return { count: context.messages.length, text: renderText(context) };
      ${end}`);
    const answer = await runAsWorker(code);
    expect(answer["count"]).toBe(2);
    expect(JSON.stringify(answer["text"])).toContain("Paint the quay.");
  });

  it.each(["core", "history", "policy"])("the root of %s uses no module and no global of Node", async (name) => {
    const code = await bundled(`export * from "@throughline/${name}";`, `packages/${name}`);
    expect(code.length).toBeGreaterThan(1000);
    expect(code).not.toMatch(/_of_node|require\("node:|from "node:/);
  });

  it("the client of a server uses no module and no global of Node", async () => {
    const code = await bundled('export * from "./src/client/http-client.ts";', "packages/store-http");
    expect(code.length).toBeGreaterThan(1000);
    expect(code).not.toMatch(/_of_node|require\("node:|from "node:/);
  });

  it("a global of Node is found", async () => {
    const code = await bundled("export const size = (text) => Buffer.byteLength(text) + process.pid;");
    expect(code).toContain("buffer_of_node");
    expect(code).toContain("process_of_node");
  });

  it("fails for an entry point that needs Node", async () => {
    await expect(bundled(`export * from "@throughline/core/internal/node";`)).rejects.toThrow(
      /Could not resolve "node:/,
    );
  });
});

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createMemoryStore } from "@throughline/store-memory";
import { defineTool, sessionRef } from "@throughline/core";
import { updateEntry } from "@throughline/core/internal";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { managementBlock, migrationBlock, persistenceBlock, policyBlock } from "../../config/test/documents.ts";
import { AgentFolder } from "./agent-folder.ts";
import { writeOpenclawSessions } from "./openclaw-sessions.ts";

let folder: AgentFolder;
beforeEach(async () => {
  folder = await new AgentFolder().start();
});
afterEach(() => folder[Symbol.asyncDispose]());

describe("the blocks of the documents", () => {
  it(
    "keep the store at its path, and ask Ollama for a checkpoint at 25 % of the window",
    { tags: ["slow"] },
    async () => {
      const config = managementBlock.replace("http://localhost:11434", folder.provider.url);
      const agent = await folder.open({ config });
      const session = await agent.sessions.open(agent.defaultKey);
      expect(await session.runTurn("tokens:52000")).toMatchObject({ outcome: "done", text: "Noted." });
      await agent.close({ waitMs: 60_000 });
      await using again = await folder.open({ config });
      const { checkpoints } = await (await again.sessions.open(again.defaultKey)).checkpoints();
      expect(checkpoints).toMatchObject([{ model: "ollama/qwen2.5:7b" }]);
      expect(folder.models()).toEqual(["claude-opus-5", "qwen2.5:7b"]);
      expect(folder.provider.refusals).toEqual([]);
      expect(existsSync(join(folder.path, ".openclaw/sessions.db"))).toBe(true);
    },
  );

  it("inherit the sessions of OpenClaw, and continue the default key", { tags: ["slow"] }, async () => {
    writeOpenclawSessions(folder.path);
    await using agent = await folder.open({ config: persistenceBlock });
    expect(agent.defaultKey).toBe("agent:main:main");
    const session = await agent.sessions.open(agent.defaultKey);
    await session.runTurn("and now?");
    expect(JSON.stringify(folder.provider.requests.at(-1)?.body)).toContain("where are the lamps of s1?");
    const { sessions } = await agent.sessions.list();
    expect(sessions.map(({ key }) => key)).toEqual(["agent:main:main", "agent:main:discord:dm:ada"]);
    expect(folder.notes).toContain("session.storage is read as session.store.");
    expect(folder.notes).toContainEqual(expect.stringMatching(/^Sessions imported from .*: 2\.$/));
  });

  it("import what they inherit once", async () => {
    writeOpenclawSessions(folder.path);
    for (let start = 0; start < 2; start++) await (await folder.open({ config: migrationBlock })).close();
    expect(folder.notes.filter((note) => note.startsWith("Sessions imported"))).toHaveLength(1);
  });

  it("lose no session of their own when what they inherit cannot be noted", async () => {
    writeOpenclawSessions(folder.path);
    const home = folder.write("home", "a file in the place of the home");
    const store = createMemoryStore();
    await using agent = await folder.open({ config: migrationBlock, store, environment: { THROUGHLINE_HOME: home } });
    expect((await agent.sessions.list()).sessions).toHaveLength(2);
    expect(folder.notes.join("\n")).toContain("The list of read files cannot be written");
  });

  it("deny an answer by their send policy", async () => {
    await using agent = await folder.open({ config: policyBlock });
    const group = await agent.sessions.open("agent:main:discord:group:harbor");
    expect(await group.runTurn("hello")).toMatchObject({ outcome: "denied" });
    expect(folder.models()).toEqual([]);
  });
});

describe("an agent from a configuration", () => {
  it("continues after a restart what it stored", async () => {
    const config = { store: "sqlite:harbor.db", system: "You keep the lamps." };
    const first = await folder.open({ config });
    await (await first.sessions.open("home")).runTurn("The fourth lamp is broken.");
    await first.close();
    await using second = await folder.open({ config });
    await (await second.sessions.open("home")).runTurn("Which lamp?");
    const body = JSON.stringify(folder.provider.requests.at(-1)?.body);
    expect(body).toContain("The fourth lamp is broken.");
    expect(body).toContain("You keep the lamps.");
    expect(existsSync(join(folder.path, "work/harbor.db"))).toBe(true);
  });

  it("reads the file of the home, a named file, and the environment before both", async () => {
    folder.write(".throughline/config.json", '{ "system": "from the home" }');
    const configFile = folder.write("named.json", '{ "system": "from the file" }');
    const systemOf = async (options: Parameters<AgentFolder["open"]>[0]): Promise<unknown> => {
      await using agent = await folder.open({ ...options, store: createMemoryStore() });
      return agent.config.settings.find(({ key }) => key === "system")?.value;
    };
    expect(await systemOf({})).toBe("from the home");
    expect(await systemOf({ configFile })).toBe("from the file");
    expect(await systemOf({ configFile, environment: { THROUGHLINE_SYSTEM: "from a variable" } })).toBe(
      "from a variable",
    );
  });

  it("opens sessions of the configured agent and namespace", async () => {
    const store = createMemoryStore();
    await using agent = await folder.open({ config: { agent: "harbor", namespace: "north" }, store });
    const { ref } = await agent.sessions.open("home");
    expect(ref).toMatchObject({ agentId: "harbor", namespace: "north", key: "agent:harbor:cli:direct:home" });
    expect(agent.defaultKey).toBe("agent:harbor:main");
  });

  it("asks the model of a session's entry, unless the configuration names one", async () => {
    const store = createMemoryStore();
    const environment = { THROUGHLINE_MODEL: "" };
    await using agent = await folder.open({ store, environment });
    expect(agent.modelName).toBe("anthropic/claude-sonnet-5");
    const { ref } = await agent.sessions.open("home");
    await updateEntry(store, ref, (entry) => ({ ...entry, modelOverride: "anthropic/claude-haiku-4-5" }));
    await (await agent.sessions.open("home")).runTurn("hello");
    await (await agent.sessions.open("other")).runTurn("hello");
    await using named = await folder.open({ store });
    await (await named.sessions.open("home")).runTurn("hello");
    expect(folder.models()).toEqual(["claude-haiku-4-5", "claude-sonnet-5", "claude-opus-5"]);
  });

  it("notes an override that cannot be used, and answers with the usual model", async () => {
    const store = createMemoryStore();
    await using agent = await folder.open({ store, environment: { THROUGHLINE_MODEL: "" } });
    const { ref } = await agent.sessions.open("home");
    await updateEntry(store, ref, (entry) => ({ ...entry, modelOverride: "openai/gpt-5" }));
    const session = await agent.sessions.open("home");
    expect(session.model.modelId).toBe("claude-sonnet-5");
    expect(folder.notes).toEqual([expect.stringContaining("OPENAI_API_KEY is not set")]);
  });

  it("gives the model the tools of the setting and those of the program, and hides its own files", async () => {
    folder.write("work/notes.md", "the key hangs behind the stove");
    folder.write("work/.throughline/config.json", '{ "tools": "read" }');
    const year = defineTool({ name: "year", description: "The year.", input: { type: "object" }, run: () => "2026" });
    await using agent = await folder.open({
      environment: { THROUGHLINE_HOME: join(folder.path, "work/.throughline") },
      config: { toolsAllow: [".throughline"] },
      tools: [year],
    });
    folder.provider.enqueue(
      {
        kind: "answer",
        content: [
          { type: "tool-call", name: "read", input: { path: "notes.md" } },
          { type: "tool-call", name: "read", input: { path: ".throughline/config.json" } },
          { type: "tool-call", name: "year", input: {} },
        ],
      },
      "Done.",
    );
    await (await agent.sessions.open("home")).runTurn("look");
    const body = JSON.stringify(folder.provider.requests.at(-1)?.body);
    expect(body).toContain("the key hangs behind the stove");
    expect(body).toContain("2026");
    expect(body).not.toContain("toolsAllow");
  });

  it("remembers across processes which summarizer fails", async () => {
    const config = {
      store: "memory:",
      session: { compaction: { summaryModels: ["ollama/absent"], ollama: { url: "http://127.0.0.1:9" } } },
    };
    await using agent = await folder.open({ config });
    const session = await agent.sessions.open("home");
    for (let turn = 0; turn < 6; turn++) await session.runTurn(`Look after quay ${turn}. `.repeat(100));
    await session.compact();
    const state = readFileSync(join(folder.path, ".throughline/summarizer-breakers.json"), "utf8");
    expect(state).toContain("ollama/absent");
    await using next = await folder.open({ config });
    const status = await (await next.sessions.open("home")).status();
    expect(status.summarizers).toMatchObject([{ name: "ollama/absent", failures: 1 }]);
  });

  it("leaves a store of the program open, and closes its own", async () => {
    const store = createMemoryStore();
    const agent = await folder.open({ store });
    await agent.close();
    await agent.close();
    expect(await store.load(sessionRef({ key: "agent:main:main" }))).toBeNull();
    const own = await folder.open({ config: { store: "memory:" } });
    await own.close();
    await expect(own.store.load(sessionRef({ key: "agent:main:main" }))).rejects.toMatchObject({
      code: "STORE_CLOSED",
    });
  });
});

describe("the end of an agent", () => {
  const config = { store: "sqlite:harbor.db", session: { checkpoint: { enabled: true, model: "ollama/qwen2.5:7b" } } };

  it(
    "waits for the checkpoint of every session, also for the one that is written last",
    { tags: ["slow"] },
    async () => {
      const environment = { OLLAMA_HOST: folder.provider.url };
      folder.helperDelaysMs.push(0, 600);
      const agent = await folder.open({ config, environment });
      await Promise.all(
        ["north", "south"].map(async (name) => (await agent.sessions.open(name)).runTurn("tokens:120000")),
      );
      await agent.close({ waitMs: 60_000 });
      await using again = await folder.open({ config, environment });
      for (const name of ["north", "south"]) {
        const { checkpoints } = await (await again.sessions.open(name)).checkpoints();
        expect(checkpoints).toHaveLength(1);
      }
    },
  );

  it("does not wait without being asked to", async () => {
    folder.helperDelaysMs.push(60_000);
    const agent = await folder.open({ config, environment: { OLLAMA_HOST: folder.provider.url } });
    await (await agent.sessions.open("north")).runTurn("tokens:120000");
    await agent.close();
    expect(folder.models().filter((model) => model === "claude-opus-5")).toHaveLength(1);
  });

  it.each([{ waitMs: -1 }, { waitMS: 5 } as object])("refuses %j", async (options) => {
    await using agent = await folder.open({ store: createMemoryStore() });
    await expect(agent.close(options)).rejects.toMatchObject({ code: "INPUT_INVALID" });
  });
});

describe("what cannot be an agent", () => {
  it.each([
    ["a setting that does not exist", { config: { modle: "offline" } }, "CONFIG_INVALID", /did you mean model\?/],
    ["a text that is no configuration", { config: "sqlite" }, "CONFIG_INVALID", /config:1/],
    [
      "an option of another type",
      { config: 7 as unknown as string },
      "INPUT_INVALID",
      /`config` must be an object, or a text/,
    ],
    ["a file that does not exist", { configFile: "absent.json" }, "FILE_NOT_FOUND", /absent\.json" does not exist/],
    ["a store of no known kind", { config: { store: "redis:x" } }, "STORE_URL_INVALID", /redis/],
    [
      "a provider that does not exist",
      { config: { model: "nobody/x" }, environment: { THROUGHLINE_MODEL: "" } },
      "INPUT_INVALID",
      /nobody/,
    ],
    [
      "a model without a key",
      { environment: { ANTHROPIC_API_KEY: "", ANTHROPIC_BASE_URL: "" } },
      "MODEL_KEY_MISSING",
      /ANTHROPIC_API_KEY is not set/,
    ],
    ["an agent with an invalid id", { config: { agent: "a b" } }, "AGENT_ID_INVALID", /a b/],
  ] as const)("is %s", async (_, options, code, message) => {
    await expect(folder.open(options)).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message) as string,
    });
  });
});

import { createPostgresStore, type PostgresStore } from "@throughline/store-postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startPostgres, type PostgresServer } from "../../../packages/store-postgres/test/postgres-server.ts";
import { objects, runHere, temporaryDirectory } from "./harness.ts";
import { kinds } from "./json-shapes.ts";

const directory = temporaryDirectory();
let server: PostgresServer | { readonly unavailable: string };
let url = "";
let schemas = 0;

beforeAll(async () => {
  server = await startPostgres();
  if (!("unavailable" in server)) url = server.url;
});
afterAll(async () => {
  if (!("unavailable" in server)) await server.stop();
  directory.remove();
});

interface Places {
  readonly source: string;
  readonly target: string;
}

function places(): Places {
  schemas += 1;
  return { source: `${url}?schema=source_${schemas}`, target: `${url}?schema=target_${schemas}&layout=tenant` };
}

async function withStore<Result>(at: string, work: (store: PostgresStore) => Promise<Result>): Promise<Result> {
  await using store = createPostgresStore({ url: at, partitions: 2, notify: false });
  return await work(store);
}

const refOf = (name: string, namespace = ""): { namespace: string; agentId: string; key: string } => ({
  namespace,
  agentId: "main",
  key: `agent:main:${name}`,
});

async function fill(at: string): Promise<void> {
  await withStore(at, async (store) => {
    for (const ref of [refOf("a"), refOf("b"), refOf("c", "customer")]) {
      await store.save(ref, { sessionId: `s-${ref.key.at(-1)}` }, { ifRevision: null });
      await store.append(ref, [{ type: "message", message: { role: "user", content: "needle" } }]);
    }
    const turn = { action: "open", fence: 1, turnId: "t", owner: "o", leaseUntilMs: 4e12 } as const;
    await store.append(refOf("b"), [], { turn });
  });
}

describe("relocate", () => {
  it(
    "moves one namespace, says what stayed and why, and moves the rest when it is run again",
    { tags: ["slow"] },
    async (context) => {
      if ("unavailable" in server) return context.skip(server.unavailable);
      const { source, target } = places();
      await fill(source);
      const run = (...args: string[]): ReturnType<typeof runHere> =>
        runHere(directory.path, ["relocate", "--store", source, "--to-store", target, ...args]);
      const unasked = await run();
      expect([unasked.code, unasked.stderr]).toEqual([2, expect.stringContaining("--yes")]);
      const first = await run("--yes", "--json");
      expect(first.code).toBe(3);
      expect(first.stderr).toContain("1 session in a turn stayed");
      expect(objects(first.stdout).map(({ kind, state }) => [kind, state])).toEqual([
        ["relocate", "moved"],
        ["relocate", "busy"],
        ["end", undefined],
      ]);
      expect(kinds(first.stdout)).toEqual(["relocate", "relocate", "end"]);
      await withStore(source, (store) => store.append(refOf("b"), [], { turn: { action: "close", fence: 1 } }));
      const second = await run("--yes");
      expect([second.code, second.stdout]).toEqual([0, expect.stringMatching(/^moved\t\d+ records?\tagent:main:b\n$/)]);
      const all = await run("--all-namespaces", "--yes");
      expect([all.code, all.stdout]).toEqual([0, "moved\t1 record\tagent:main:c\n"]);
      expect((await run("--all-namespaces", "--yes")).stdout).toBe("");
      const found = await runHere(directory.path, ["search", "needle", "--store", target, "--json"]);
      expect(objects(found.stdout).filter(({ kind }) => kind === "hit")).toHaveLength(2);
    },
  );

  it("takes PostgreSQL only, and changes nothing where a target is none", async (context) => {
    if ("unavailable" in server) return context.skip(server.unavailable);
    const { source } = places();
    await fill(source);
    for (const args of [
      ["--store", source, "--to-store", "sqlite:other.db"],
      ["--store", "sqlite:some.db", "--to-store", source],
    ]) {
      const { code, stderr } = await runHere(directory.path, ["relocate", ...args, "--yes", "--json"]);
      expect([code, stderr]).toEqual([expect.any(Number), expect.stringContaining("CAPABILITY_UNSUPPORTED")]);
    }
    const same = await runHere(directory.path, [
      "relocate",
      "--store",
      source,
      "--to-store",
      source,
      "--yes",
      "--json",
    ]);
    expect([same.code, same.stderr]).toEqual([expect.any(Number), expect.stringContaining("INPUT_INVALID")]);
    expect((await runHere(directory.path, ["relocate", "--yes"])).code).toBe(2);
    await withStore(source, async (store) => expect((await store.list()).sessions).toHaveLength(2));
  });
});

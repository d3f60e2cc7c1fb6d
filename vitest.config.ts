import { existsSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { defineConfig } from "vitest/config";
import type { ViteUserConfig } from "vitest/config";
import { isRoomyMemory, makeRunFolder } from "./tools/memory-folder.ts";
import { isLongRun } from "./tools/test-size.ts";

const root: string = import.meta.dirname;
const conditions: string[] = ["@throughline/source"];

/** Folders with a `test` folder: one project each, named after the folder. */
function projectFolders(): string[] {
  const groups = ["packages", "apps", "examples"];
  const found = groups.flatMap((group) =>
    existsSync(join(root, group)) ? readdirSync(join(root, group)).map((name) => `${group}/${name}`) : [],
  );
  return [...found, "lab", "tools"].filter((folder) => existsSync(join(root, folder, "test"))).toSorted();
}

/**
 * Projects each of whose files has a worker of its own. The files of all others share workers, which load the sources once
 * instead of once for each file: what a file changes of its process, it restores.
 */
const isolated: ReadonlySet<string> = new Set(["packages/store-postgres"]);

/**
 * Projects whose temporary files lie on the disk in every tier: they try the tools and measurements that the long tier
 * runs on a disk. The tests of all others repeat one thing hundreds of times, and a flush costs nothing in memory. What a
 * disk does, they simulate.
 */
const onDisk: ReadonlySet<string> = new Set(["lab", "tools"]);

/**
 * Foreign servers into which the tests of the routes also mount the session API. Each is a project of its own, which the
 * default tier leaves out.
 */
const apiHosts: readonly string[] = ["express", "hono"];
/** Tests whose requests, bodies, connections and streams another server may handle differently. The long tier runs all. */
const hostTests: readonly string[] = ["abuse", "abuse-connections", "attach", "routes", "whole-api"];
/** Tests of the gateway, which our own server mounts alone, and tests that choose their server themselves. */
const ownServerTests: readonly string[] = [
  "abuse-gateway",
  "abuse-load",
  "abuse-rows",
  "abuse-upstreams",
  "foreign-hosts",
  "gateway-*",
  "page",
  "revoked-answers.slow",
];

/** Has a name, a folder, and what differs from the other projects. */
interface TestProject {
  readonly name: string;
  readonly folder: string;
  readonly include: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const testProjects: readonly TestProject[] = [
  ...projectFolders().map((folder) => ({ name: folder, folder, include: ["test/**/*.test.ts"], env: {} })),
  ...apiHosts.map((host) => ({
    name: `apps/server in ${host}`,
    folder: "apps/server",
    // Express has the handler of Node's own server, so what a route does between two turns of the loop is known.
    include: isLongRun
      ? [`test/!(${(host === "express" ? [...ownServerTests, "sliced-work"] : ownServerTests).join("|")}).test.ts`]
      : hostTests.map((name) => `test/${name}.test.ts`),
    env: { THROUGHLINE_API_HOST: host },
  })),
];

const memory: string | null = isRoomyMemory("/dev/shm") ? makeRunFolder("/dev/shm") : null;

/** Another version of the AI SDK than the workspace's, by the folder that it was installed into (`lab/ai-sdk-versions.ts`). */
const aiSdkFolder: string | undefined = process.env["THROUGHLINE_AI_SDK"];
const aiSdk: readonly { find: RegExp; replacement: string }[] =
  aiSdkFolder === undefined
    ? []
    : ["ai", "ai/test"].map((name) => {
        const { resolve } = createRequire(join(aiSdkFolder, "package.json"));
        return { find: new RegExp(`^${name}$`), replacement: resolve(name) };
      });

const config: ViteUserConfig = defineConfig({
  // All three are needed: a project that misses one resolves a neighbour's dist, which a fresh clone does not have.
  resolve: { alias: [...aiSdk], conditions: [...conditions, "module", "node", "development|production"] },
  ssr: {
    resolve: {
      conditions: [...conditions, "module", "node", "development|production"],
      externalConditions: [...conditions, "node", "module-sync"],
    },
  },
  test: {
    // On two cores the default is one file at a time. Most files wait for processes, disks and servers: three at once used
    // 1.6 of two cores in the whole tier. Four were not compared with three on a quiet machine.
    maxWorkers: Math.max(4, availableParallelism() - 1),
    tags: [
      { name: "slow", description: "takes over half a second; npm test leaves it out, npm test -- --all runs it" },
    ],
    reporters: ["default", "./tools/closing-line-reporter.ts"],
    projects: testProjects.map(({ name, folder, include, env }) => ({
      extends: true as const,
      test: {
        name,
        isolate: isolated.has(folder),
        // All projects keep the root of the repository: vitest caches a compiled source for each root, and would compile
        // core for each of them.
        include: include.map((path) => `${folder}/${path}`),
        setupFiles: [join(root, "tools/fail-on-console.ts")],
        // A server that all tests of a folder share.
        globalSetup: [join(root, folder, "test/global-setup.ts")].filter((path) => existsSync(path)),
        env: {
          ...env,
          // Tests that start their own processes need the same condition to find sources,
          NODE_OPTIONS: "--conditions=@throughline/source",
          // times that are shown are those of one zone,
          TZ: "UTC",
          // and compiling these is three quarters of what such a process costs.
          NODE_COMPILE_CACHE: join(root, "node_modules/.cache/test-processes"),
          ...(memory === null || isLongRun || onDisk.has(folder) ? {} : { TMPDIR: memory }),
        },
        // Against a test that hangs, not against one that is slow: the slowest takes 20 s on a quiet machine.
        testTimeout: 180_000,
        hookTimeout: 180_000,
        expect: { poll: { timeout: 60_000 } },
      },
    })),
  },
});

export default config;

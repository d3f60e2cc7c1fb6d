import { fork } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import process from "node:process";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { canary, fill, layouts, workspaceWith } from "./denied-layouts.ts";
import type { Layout } from "./denied-layouts.ts";
import { runHere, temporaryDirectory } from "./harness.ts";
import { chat } from "./model-chat.ts";
import type { Answer, Call } from "./model-chat.ts";
import { runInTerminal } from "./terminal.ts";

const exchangerPath = join(import.meta.dirname, "exchange-links.ts");

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

/** Calls and refusals by layout and tool, for docs/decisions/2026-11-23-denied-files.md. */
const table = new Map<string, { calls: number; refused: number }>();
afterAll(() => {
  const path = process.env["THROUGHLINE_ATTACK_TABLE"];
  if (path === undefined) return;
  for (const [row, { calls, refused }] of table) appendFileSync(path, `| ${row} | ${calls} | ${refused} |\n`);
});

function count(layout: string, answers: readonly Answer[]): void {
  for (const { call, isError } of answers) {
    const row = table.get(`${layout} | ${call[0]}`) ?? { calls: 0, refused: 0 };
    row.calls += 1;
    row.refused += isError ? 1 : 0;
    table.set(`${layout} | ${call[0]}`, row);
  }
}

/** Ways to write a path of the workspace. */
function ways(path: string, workspace: string): readonly string[] {
  const cwd = readlinkOf(workspace);
  return [
    path,
    `./${path}`,
    `${path}/`,
    `.//${path.replaceAll("/", "//")}`,
    `sub/../${path}`,
    `../${cwd}/${path}`,
    join(workspace, path),
    `/proc/self/cwd/${path}`,
    `/dev/fd/../cwd/${path}`,
    `/proc/self/root${workspace}/${path}`,
  ];
}

function readlinkOf(workspace: string): string {
  return workspace.slice(workspace.lastIndexOf("/") + 1);
}

/** In the short tier each file and folder gets three of the ways, by turns, so that together they get all. */
function chosenWays(path: string, workspace: string, at: number): readonly string[] {
  const all = ways(path, workspace);
  const short = [0, 1, 2].flatMap((next) => all[(at * 3 + next) % all.length] ?? []);
  return testSize({ short, long: all });
}

function attacks({ files, folders, workspace }: Layout): readonly Call[] {
  const onFiles = files.flatMap((file, at) =>
    chosenWays(file, workspace, at).flatMap((path): Call[] => [
      ["read", { path }],
      ["write", { path, content: "planted" }],
      ["edit", { path, old_text: "a", new_text: "planted", replace_all: true }],
      ["list", { path }],
    ]),
  );
  const onFolders = folders.flatMap((folder, at) =>
    chosenWays(folder, workspace, files.length + at).flatMap((path): Call[] => [
      ["list", { path, depth: 5 }],
      ["write", { path: `${path}/planted.jsonl`, content: "planted" }],
      ["write", { path: `${path}/new/planted`, content: "planted" }],
    ]),
  );
  const odd = [
    "/proc/self/environ",
    "/proc/self/fd/3",
    "/dev/fd/0",
    "/dev/stdin",
    "a\0b",
    "x".repeat(300),
    "y/".repeat(5000),
  ];
  const onOdd = odd.flatMap((path): Call[] => [
    ["read", { path }],
    ["write", { path, content: "planted" }],
    ["edit", { path, old_text: "a", new_text: "planted" }],
    ["list", { path }],
  ]);
  const searches = [canary, `"${canary}"`, "modelApiKey", "secret OR key"].map((query): Call => [
    "memory_search",
    { query, limit: 20 },
  ]);
  return [...onFiles, ...onFolders, ...onOdd, ...searches, ["list", { depth: 5 }], ["read", { path: "free.txt" }]];
}

describe.each(Object.entries(layouts))("a model with every tool, where %s", (name, makeLayout) => {
  it("sees and changes nothing that is denied", async () => {
    const layout = await makeLayout(directory.path);
    const before = layout.kept.map((path) => readFileSync(path, "utf8"));
    const calls = attacks(layout);
    const { run, answers, sent } = await chat({ ...layout, arguments: [...layout.arguments, "--tools", "all"] }, calls);
    count(name, answers);
    expect(run.stderr).not.toContain("error");
    // It asked for them by name, so only what came back counts.
    for (const { text } of answers) expect(text).not.toContain(canary);
    expect(sent.replaceAll(`"query":"${canary}"`, "").replaceAll(`"query":"\\"${canary}\\""`, "")).not.toContain(
      canary,
    );
    const done = answers.filter(({ call, isError }) => !isError && call[0] !== "memory_search");
    expect(done.filter(({ call }) => !isFree(call)).map(({ call, text }) => [call, text])).toEqual([]);
    expect(layout.kept.map((path) => readFileSync(path, "utf8"))).toEqual(before);
    expect(plantedBelow(directory.path)).toEqual([]);
    const at = layout.arguments.indexOf("--store");
    const given = at < 0 ? [] : layout.arguments.slice(at, at + 2);
    const verified = await runHere(layout.home, ["verify", "--full", ...given], { cwd: layout.workspace });
    expect(verified).toMatchObject({ code: 0 });
    const shown = await runHere(layout.home, ["show", "attack", "--json", ...given], { cwd: layout.workspace });
    // What was asked, what the model called, each result, and its last words.
    expect(shown.stdout.split("\n").length).toBeGreaterThan(calls.length);
  });
});

describe("a model", () => {
  it("gets no file tools in a workspace below the store, and the person is told", async () => {
    const root = join(directory.path, "store");
    const workspace = workspaceWith(join(root, "agents/main/sessions"));
    await fill(join(directory.path, "home"), `jsonl:${root}`);
    const home = join(directory.path, "home");
    const layout = { home, workspace, arguments: ["--store", `jsonl:${root}`, "--tools", "all"] };
    const { run, answers, tools } = await chat(layout, [
      ["memory_search", { query: "key" }],
      ["read", { path: "free.txt" }],
    ]);
    expect(tools).toEqual(["memory_search"]);
    expect(answers.map(({ isError }) => isError)).toEqual([false, true]);
    expect(run.stderr).toContain(
      "lies in the store, so the model gets no file tools. Choose another folder with --workspace.",
    );
  });

  it("reads no process and no home where the whole machine is the workspace", async () => {
    const home = join(directory.path, "home");
    await fill(home);
    const paths = [
      "proc/self/environ",
      "/proc/self/environ",
      "proc/1/environ",
      "proc/self/root/etc/passwd",
      "sys/power/state",
    ];
    const denied = [...paths, `${home}/config.json`, `proc/self/cwd/config.json`, `.${home}/sessions.db`];
    const calls = denied.flatMap((path): Call[] => [
      ["read", { path }],
      ["list", { path }],
      ["write", { path: `${path}/planted`, content: "planted" }],
    ]);
    const layout = { home, workspace: home, arguments: ["--workspace", "/", "--tools", "all"] };
    const { answers, sent } = await chat(layout, calls);
    count("the whole machine is the workspace", answers);
    expect(answers.filter(({ isError, call }) => !isError && call[1]["path"] !== "proc/self/root/etc/passwd")).toEqual(
      [],
    );
    expect(sent).not.toContain(canary);
    expect(plantedBelow(directory.path)).toEqual([]);
  });

  it("sees nothing denied while another process exchanges links and folders", async () => {
    const workspace = workspaceWith(join(directory.path, "work"));
    const home = join(workspace, "throughline");
    await fill(home);
    const link = join(directory.path, "home");
    symlinkSync(home, link);
    mkdirSync(join(workspace, "swapped"));
    writeFileSync(join(workspace, "swapped/config.json"), "bait a");
    symlinkSync("throughline", join(workspace, "link"));
    symlinkSync("../throughline", join(workspace, "memory/swapped"));
    writeFileSync(join(workspace, "memory/aside"), "bait heron");
    const calls = Array.from({ length: testSize({ short: 8, long: 60 }) }, (_, time): readonly Call[] => [
      ["read", { path: "swapped/config.json" }],
      ["write", { path: `swapped/planted-${time}`, content: `planted by call ${time}` }],
      ["edit", { path: "swapped/config.json", old_text: "a", new_text: "a" }],
      ["list", { path: "swapped" }],
      ["memory_search", { query: "heron key" }],
    ]).flat();
    const [folders, files] = [
      ["swapped", "link", "aside"],
      ["memory/swapped", "memory/aside", "memory/third"],
    ].map((names) => names.map((name) => join(workspace, name)));
    const exchanger = fork(exchangerPath, [], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
    exchanger.send([folders, files]);
    let answers: readonly Answer[] = [];
    let sent = "";
    const before = readFileSync(join(home, "config.json"), "utf8");
    try {
      await once(exchanger, "message");
      ({ answers, sent } = await chat({ home: link, workspace, arguments: ["--tools", "all"] }, calls));
    } finally {
      exchanger.send("stop");
    }
    const [times] = (await once(exchanger, "message")) as [number];
    count("links exchanged by another process", answers);
    expect(times).toBeGreaterThan(20);
    expect(sent).not.toContain(canary);
    expect(readFileSync(join(home, "config.json"), "utf8")).toBe(before);
    expect(readdirSync(home).filter((name) => /planted/.test(name))).toEqual([]);
    for (const { text } of answers) expect(text).not.toContain("sessions.db");
  });

  it("is denied everything that Throughline puts into a home", async () => {
    const home = directory.path;
    const work = workspaceWith(join(home, "work"));
    writeFileSync(join(home, "config.json"), "{}");
    for (const store of [[], ["--store", `jsonl:${home}`], ["--store", `jsonl:${home}`, "--namespace", "n"]])
      await runHere(home, ["chat", "--once", "hello", "--model", "offline", ...store], { cwd: work });
    await using terminal = runInTerminal(home, ["chat", "--model", "offline"]);
    await terminal.waitForPrompt();
    terminal.write("hello\r");
    await terminal.waitForPrompt();
    terminal.write("/quit\r");
    await terminal.exitCode();
    const names = readdirSync(home).filter((name) => name !== "work");
    expect(names).toContain("chat-history-main.jsonl");
    const { answers } = await chat({ home, workspace: home, arguments: [] }, [["list", { path: "." }]]);
    const listed = JSON.parse(answers[0]?.text ?? "") as readonly { readonly text: string }[];
    const lines = listed[0]?.text.split("\n") ?? [];
    expect(lines.filter((line) => !line.endsWith("  [not for tools]"))).toEqual(["work/"]);
    expect(lines.length).toBeGreaterThan(names.length);
  });
});

/** The workspace's own file, and the list of the workspace itself. */
function isFree([tool, { path }]: Call): boolean {
  return (tool === "read" && path === "free.txt") || (tool === "list" && path === undefined);
}

/** Every file below a folder that a model could have made, and did. */
function plantedBelow(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => /planted/.test(entry.name) || (entry.isFile() && isPlanted(join(entry.parentPath, entry.name))))
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
}

function isPlanted(path: string): boolean {
  return lstatSync(path).size < 20 && readFileSync(path, "utf8").includes("planted");
}

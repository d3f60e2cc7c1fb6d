import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { programTranscripts } from "../src/foreign/foreign-places.ts";
import { fixtureFolder } from "./fixture-folder.ts";

const id = "54519cf2-0636-4c90-924d-6a77bc43ad98";

/** Where programs keep a session, by the variables that are set: a variable names a folder of the user. */
const places: readonly {
  readonly program: string;
  readonly variables: Readonly<Record<string, string>>;
  readonly file: string;
}[] = [
  { program: "Qwen Code", variables: {}, file: `.qwen/projects/-w/chats/${id}.jsonl` },
  { program: "Qwen Code", variables: { QWEN_HOME: "own" }, file: `own/projects/-w/chats/archive/${id}.jsonl` },
  {
    program: "Qwen Code",
    variables: { QWEN_HOME: "own", QWEN_RUNTIME_DIR: "run" },
    file: `run/projects/-w/subagents/${id}/agent-explore.jsonl`,
  },
  { program: "Cline", variables: {}, file: ".cline/data/sessions/1_a/1_a.messages.json" },
  { program: "Cline", variables: { CLINE_DIR: "own" }, file: "own/data/sessions/1_a/1_a.messages.json" },
  {
    program: "Cline",
    variables: { CLINE_DIR: "own", CLINE_DATA_DIR: "data" },
    file: "data/sessions/1_a/b.messages.json",
  },
  { program: "Codex", variables: {}, file: `.codex/sessions/rollout-2025-05-07-${id}.json` },
];

describe("the places of programs", () => {
  it.each(places)("of $program are found: $file", ({ program, variables, file }) => {
    using folder = fixtureFolder();
    const environment = Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, folder.at(value)]));
    const user = { environment, userHome: folder.at(".") };
    expect(programTranscripts(user, () => true)).toEqual([]);
    const path = join(folder.at("."), file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, "{}\n");
    const found = programTranscripts(user, () => true);
    expect(found.map((one) => [one.program, one.files])).toEqual([[program, 1]]);
  });
});

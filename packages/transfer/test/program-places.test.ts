import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { programPlaces } from "../src/foreign/foreign-places.ts";
import { surveyPlaces } from "../src/sync/survey-places.ts";
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
  { program: "Kimi CLI", variables: {}, file: `.kimi/sessions/0123/${id}/wire.jsonl` },
  { program: "Kimi CLI", variables: { KIMI_SHARE_DIR: "own" }, file: `own/sessions/0123/${id}/wire.jsonl` },
  {
    program: "Kimi CLI",
    variables: { KIMI_SHARE_DIR: "own" },
    file: `own/sessions/0123/${id}/subagents/a1b2/wire.jsonl`,
  },
  { program: "Droid", variables: {}, file: `.factory/sessions/-w/${id}.jsonl` },
  { program: "Droid", variables: {}, file: `.factory/sessions/${id}.jsonl` },
  { program: "Cline", variables: {}, file: ".cline/data/sessions/1_a/1_a.messages.json" },
  { program: "Cline", variables: { CLINE_DIR: "own" }, file: "own/data/sessions/1_a/1_a.messages.json" },
  {
    program: "Cline",
    variables: { CLINE_DIR: "own", CLINE_DATA_DIR: "data" },
    file: "data/sessions/1_a/b.messages.json",
  },
  { program: "Goose", variables: { GOOSE_PATH_ROOT: "own" }, file: "own/data/sessions/20260101.jsonl" },
  { program: "Aider", variables: { AIDER_CHAT_HISTORY_FILE: "own.md" }, file: "own.md" },
  { program: "pi", variables: { PI_CODING_AGENT_SESSION_DIR: "own" }, file: `own/--w--/2026_${id}.jsonl` },
  { program: "opencode", variables: { OPENCODE_DB: "own.json" }, file: "own.json" },
  { program: "OpenClaw", variables: { OPENCLAW_STATE_DIR: "own" }, file: `own/agents/main/sessions/${id}.jsonl` },
  { program: "Codex", variables: {}, file: `.codex/sessions/rollout-2025-05-07-${id}.json` },
];

describe("the places of programs", () => {
  it.each(places)("of $program are found: $file", async ({ program, variables, file }) => {
    using folder = fixtureFolder();
    const environment = Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, folder.at(value)]));
    const user = { environment, userHome: folder.at(".") };
    expect(programPlaces(user, null)).toEqual([]);
    const path = join(folder.at("."), file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, "{}\n");
    const found = programPlaces(user, null);
    expect(new Set(found.map((one) => one.program))).toEqual(new Set([program]));
    const survey = await surveyPlaces(
      found.map((one) => one.path),
      null,
    );
    expect(survey).toMatchObject({ files: 1, sizeBytes: 3 });
  });
});

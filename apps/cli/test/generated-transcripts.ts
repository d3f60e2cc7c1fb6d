import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createRandom } from "../../../tools/seeded-random.ts";

type Line = Record<string, unknown>;

/** Holds what the shapes of one session are made with. */
interface Session {
  readonly folder: string;
  readonly seed: number;
  readonly random: () => number;
  /** Gives an id of this session for an id of the real transcript. */
  readonly id: (real: string) => string;
  /** Moves a time of the real transcript to that of this session. */
  readonly time: (real: string) => string;
}

const dayMs = 24 * 60 * 60 * 1000;

/**
 * Writes transcripts in the shapes of real ones: cut after any line, with other ids, times and counts, forked, and with
 * counts that cannot be right. The seed decides everything.
 */
export function writeTranscripts(corpus: string, folder: string, seeds: readonly number[]): void {
  const programs = [claude, codex, gemini, copilot, opencode, pi];
  const read = (path: string): string => readFileSync(join(corpus, path), "utf8");
  for (const seed of seeds) {
    const random = createRandom(seed);
    const shiftMs = Math.floor(random() * 300) * dayMs + Math.floor(random() * dayMs);
    programs[seed % programs.length]?.(read, {
      folder,
      seed,
      random,
      id: (real) => renamed(real, seed),
      time: (real) => new Date(Date.parse(real) - shiftMs).toISOString(),
    });
  }
}

/** Replaces the digits of an id, so that its form stays and no two sessions share it. */
function renamed(real: string, seed: number): string {
  const tail = String(seed).padStart(6, "0");
  return `${real.slice(0, -6)}${tail}`;
}

function lines(text: string): Line[] {
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);
}

function cut<Item>(items: readonly Item[], random: () => number): Item[] {
  return items.slice(0, Math.max(8, Math.ceil(items.length * random())));
}

function scaled(count: unknown, factor: number): unknown {
  return typeof count === "number" ? Math.floor(count * factor) : count;
}

function save({ folder, seed }: Session, path: string, content: readonly Line[] | object): void {
  const full = join(folder, path.replace("SEED", String(seed)));
  mkdirSync(dirname(full), { recursive: true });
  const text = Array.isArray(content)
    ? content.map((line) => `${JSON.stringify(line)}\n`).join("")
    : JSON.stringify(content);
  writeFileSync(full, text);
}

function claude(read: (path: string) => string, session: Session): void {
  const { id, time, random } = session;
  const factor = 0.5 + random() * 2;
  const wrong = random() < 0.1 ? (random() < 0.5 ? -5 : 40_000_000) : null;
  const changed = (line: Line): Line => {
    const { message, requestId, uuid, parentUuid, timestamp } = line;
    const own = message as Line | undefined;
    const usage = own?.["usage"] as Line | undefined;
    return {
      ...line,
      sessionId: id(String(line["sessionId"])),
      ...(uuid === undefined ? {} : { uuid: id(String(uuid)) }),
      ...(typeof parentUuid === "string" ? { parentUuid: id(parentUuid) } : {}),
      ...(timestamp === undefined ? {} : { timestamp: time(String(timestamp)) }),
      ...(requestId === undefined ? {} : { requestId: id(String(requestId)) }),
      ...(usage === undefined || own === undefined
        ? {}
        : {
            message: {
              ...own,
              id: id(String(own["id"])),
              usage: {
                input_tokens:
                  wrong !== null && String(own["id"]).includes("Dg2q") ? wrong : scaled(usage["input_tokens"], factor),
                output_tokens: scaled(usage["output_tokens"], factor + (line["uuid"] === "last" ? 1 : 0)),
                cache_read_input_tokens: scaled(usage["cache_read_input_tokens"], factor),
                cache_creation_input_tokens: scaled(usage["cache_creation_input_tokens"], factor),
              },
            },
          }),
    };
  };
  const whole = lines(read("foreign/claude-code/toolpath-convo.jsonl")).map(changed);
  grow(whole);
  const own = cut(whole, random);
  const sessionId = String(own[0]?.["sessionId"]);
  save(session, `claude/projects/-w/${sessionId}.jsonl`, own);
  if (random() < 0.5) return;
  // A fork repeats the lines under its own id, some versions with new uuids, and continues with calls of its own.
  const forkId = `${sessionId.slice(0, -7)}f${sessionId.slice(-6)}`;
  const hasNewIds = random() < 0.5;
  const rest = whole.slice(own.length).map((line) => ({ ...line, ...newCall(line) }));
  const fork = [...own, ...rest].map((line) => ({ ...line, sessionId: forkId, ...(hasNewIds ? uuids(line) : {}) }));
  save(session, `claude/projects/-w/${forkId}.jsonl`, fork);
}

function newCall({ message }: Line): Line {
  const own = message as Line | undefined;
  return own?.["id"] === undefined ? {} : { message: { ...own, id: `${String(own["id"])}f` } };
}

/** While a reply is written, its first lines state less output than its last one. */
function grow(whole: readonly Line[]): void {
  const last = new Map<unknown, Line>();
  for (const { message } of whole) {
    const own = message as Line | undefined;
    if (own?.["usage"] !== undefined) last.set(own["id"], own);
  }
  for (const { message } of whole) {
    const own = message as Line | undefined;
    const usage = own?.["usage"] as Record<string, number> | undefined;
    if (own !== undefined && usage !== undefined && last.get(own["id"]) !== own) usage["output_tokens"] = 3;
  }
}

function uuids({ uuid, parentUuid }: Line): Line {
  const fresh = (given: unknown): string => `f${String(given).slice(1)}`;
  return {
    ...(uuid === undefined ? {} : { uuid: fresh(uuid) }),
    ...(typeof parentUuid === "string" ? { parentUuid: fresh(parentUuid) } : {}),
  };
}

function codex(read: (path: string) => string, session: Session): void {
  const { id, time, random } = session;
  const factor = 0.5 + random() * 2;
  const real = lines(read("foreign/codex/agtrace-codex_session.jsonl"));
  const whole = real.map((line): Line => {
    const payload = structuredClone(line["payload"]) as Line;
    if (line["type"] === "session_meta") payload["id"] = id(String(payload["id"]));
    const info = payload["info"] as Record<string, Record<string, number>> | null | undefined;
    for (const name of ["total_token_usage", "last_token_usage"])
      for (const [key, count] of Object.entries(info?.[name] ?? {}))
        (info as Line as Record<string, Line>)[name]![key] = scaled(count, factor);
    return { ...line, timestamp: time(String(line["timestamp"])), payload };
  });
  const own = cut(whole, random);
  const meta = own[0]?.["payload"] as Line;
  const sessionId = String(meta["id"]);
  save(session, `codex/sessions/2025/12/09/rollout-2025-12-09T19-55-16-${sessionId}.jsonl`, own);
  if (random() < 0.5) return;
  // A fork has a head of its own and the lines of its origin, all at the time of the fork.
  const forkId = `${sessionId.slice(0, -7)}f${sessionId.slice(-6)}`;
  const timestamp = new Date(Date.parse(String(own.at(-1)?.["timestamp"])) + 40 * dayMs).toISOString();
  const head = {
    timestamp,
    type: "session_meta",
    payload: { ...meta, id: forkId, forked_from_id: sessionId, timestamp },
  };
  const rest = whole.slice(own.length).map((line) => ({ ...line, timestamp }));
  save(session, `codex/sessions/2026/01/18/rollout-2026-01-18T19-55-16-${forkId}.jsonl`, [
    head,
    ...own.map((line) => ({ ...line, timestamp })),
    ...rest,
  ]);
}

function gemini(read: (path: string) => string, session: Session): void {
  const { id, time, random } = session;
  const factor = 0.5 + random() * 2;
  const whole = lines(read("foreign/gemini-cli/toolpath-convo.jsonl")).map((line): Line => {
    const tokens = line["tokens"] as Line | undefined;
    return {
      ...line,
      ...(line["sessionId"] === undefined
        ? {}
        : { sessionId: id(String(line["sessionId"])), startTime: time(String(line["startTime"])) }),
      ...(line["id"] === undefined ? {} : { id: id(String(line["id"])) }),
      ...(line["timestamp"] === undefined ? {} : { timestamp: time(String(line["timestamp"])) }),
      ...(tokens === undefined
        ? {}
        : { tokens: Object.fromEntries(Object.entries(tokens).map(([name, count]) => [name, scaled(count, factor)])) }),
    };
  });
  save(session, `gemini/tmp/w/chats/session-SEED.jsonl`, cut(whole, random));
}

function copilot(read: (path: string) => string, session: Session): void {
  const { id, time, random } = session;
  const factor = 0.5 + random() * 2;
  const whole = lines(read("foreign/copilot-cli/toolpath-convo.jsonl")).map((line): Line => {
    const data = structuredClone(line["data"]) as Line;
    if (typeof data["sessionId"] === "string") data["sessionId"] = id(data["sessionId"]);
    for (const facts of Object.values((data["modelMetrics"] ?? {}) as Record<string, Line>))
      facts["usage"] = Object.fromEntries(
        Object.entries(facts["usage"] as Line).map(([name, count]) => [name, scaled(count, factor)]),
      );
    return { ...line, data, id: id(String(line["id"])), timestamp: time(String(line["timestamp"])) };
  });
  save(session, `copilot/session-state/SEED/events.jsonl`, random() < 0.3 ? cut(whole, random) : whole);
}

function opencode(read: (path: string) => string, session: Session): void {
  const { id, time, random } = session;
  const whole = JSON.parse(read("foreign/opencode/toolpath-export.json")) as {
    info: Line;
    messages: { info: Line; parts: Line[] }[];
  };
  const isPaid = random() < 0.5;
  const atMs = (real: unknown): number => Date.parse(time(new Date(Number(real)).toISOString()));
  const messages = cut(whole.messages, random).map(({ info, parts }) => {
    const { created } = info["time"] as { created: number };
    const { cost } = info;
    return {
      parts,
      info: {
        ...info,
        id: id(String(info["id"])),
        sessionID: id(String(info["sessionID"])),
        ...(info["parentID"] === undefined ? {} : { parentID: id(String(info["parentID"])) }),
        time: { created: atMs(created) },
        ...(cost === undefined ? {} : { cost: isPaid ? 0.001 + random() / 100 : cost }),
      },
    };
  });
  save(session, `opencode/SEED.json`, { info: { ...whole.info, id: id(String(whole.info["id"])) }, messages });
}

function pi(read: (path: string) => string, session: Session): void {
  const { id, time, random } = session;
  const whole = lines(read("pi/large-session.jsonl")).slice(0, 60);
  const own = cut(whole, random).map((line): Line => ({
    ...line,
    ...(line["id"] === undefined ? {} : { id: id(String(line["id"])) }),
    timestamp: time(String(line["timestamp"])),
  }));
  save(session, `pi/sessions/--w--/SEED.jsonl`, own);
  if (random() < 0.5) return;
  const [head, ...rest] = own;
  save(session, `pi/sessions/--w--/SEED-fork.jsonl`, [{ ...head, id: `f${String(head?.["id"]).slice(1)}` }, ...rest]);
}

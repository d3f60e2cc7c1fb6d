import { isAgentId, isSessionId } from "@throughline/core/internal";

/** Names the kind of a file in a sessions directory. */
type SessionFileKind =
  | "transcript"
  /** A reset or a deletion archived the session. */
  | "reset-archive"
  | "deleted-archive"
  | "index"
  | "backup"
  | "corrupt"
  /** A trajectory is a debug log beside a transcript. */
  | "trajectory"
  /** A checkpoint is a copy from before a compaction. */
  | "checkpoint"
  | "temporary"
  | "lock"
  | "other";

/** Describes a file in a sessions directory by its name. */
export interface SessionFileName {
  /** Names the kind of the file. */
  readonly kind: SessionFileKind;
  /** States the session id of a transcript or an archive; null when the name holds no usable id. */
  readonly sessionId: string | null;
  /** States the percent-decoded topic of a name such as `<session>-topic-7.jsonl`; null without a topic. */
  readonly topicId: string | null;
  /** States when the archive was created, in ISO 8601; null when the name states no time. */
  readonly archivedAt: string | null;
  /** States whether the name has pi's form, which puts the time before the id. */
  readonly isPiName: boolean;
}

const piPattern = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:-\d+)?Z_(.+)$/;
const topicMark = "-topic-";

const otherKinds: readonly (readonly [RegExp, SessionFileKind])[] = [
  [/\.lock$/, "lock"],
  [/(^|[.-])(tmp|temp)$|\.tmp[.-]/, "temporary"],
  [/\.corrupt([.-]|$)/, "corrupt"],
  [/\.(bak|backup|orig)([.-]|$)|~$/, "backup"],
  // A Throughline repair writes this copy beside the original file.
  [/\.repaired\.jsonl$/, "backup"],
  [/\.trajectory(-path)?\.jsonl?$/, "trajectory"],
];

/** A name may hold several such endings; the last one counts. */
function splitArchive(name: string): { base: string; kind: SessionFileKind; at: string | null } | null {
  const at = Math.max(name.lastIndexOf(".jsonl.reset"), name.lastIndexOf(".jsonl.deleted"));
  if (at < 1) return null;
  const base = name.slice(0, at + ".jsonl".length);
  const isReset = name.startsWith(".reset", base.length);
  const rest = name.slice(base.length + (isReset ? ".reset" : ".deleted").length);
  if (rest !== "" && (rest.length === 1 || !rest.startsWith("."))) return null;
  return { base, kind: isReset ? "reset-archive" : "deleted-archive", at: rest === "" ? null : rest.slice(1) };
}

/** Returns the name that an archived transcript had before; null for a file that is no archive. */
export function archivedFrom(name: string): string | null {
  return splitArchive(name)?.base ?? null;
}

function isCheckpoint(name: string): boolean {
  const at = name.indexOf(".checkpoint.") + ".checkpoint.".length;
  return at >= ".checkpoint.".length && name.endsWith(".jsonl") && name.length - ".jsonl".length > at;
}

/** Classifies a file name without its directory. */
export function classifySessionFile(name: string): SessionFileName {
  if (name === "sessions.json") return plain("index");
  for (const [pattern, kind] of otherKinds) if (pattern.test(name)) return plain(kind);
  if (isCheckpoint(name)) return plain("checkpoint");
  const archive = splitArchive(name);
  if (archive !== null) {
    const { base, kind, at } = archive;
    return { ...transcript(base), kind, archivedAt: at === null ? null : isoOf(at) };
  }
  return name.endsWith(".jsonl") ? transcript(name) : plain("other");
}

/** Colons are replaced, because some file systems do not allow them in names. */
export function archiveFileName(transcriptName: string, why: "reset" | "deleted", iso: string): string {
  return `${transcriptName}.${why}.${iso.replaceAll(":", "-")}`;
}

function transcript(name: string): SessionFileName {
  const stem = name.slice(0, -".jsonl".length);
  const pi = piPattern.exec(stem);
  const base = pi?.[1] ?? stem;
  const topicAt = base.indexOf(topicMark, 1);
  const topic = topicAt === -1 ? "" : base.slice(topicAt + topicMark.length);
  const sessionId = topic === "" ? base : base.slice(0, topicAt);
  return {
    kind: "transcript",
    sessionId: isSessionId(sessionId) ? sessionId : null,
    topicId: topic === "" ? null : decodeTopic(topic),
    archivedAt: null,
    isPiName: pi !== null,
  };
}

function plain(kind: SessionFileKind): SessionFileName {
  return { kind, sessionId: null, topicId: null, archivedAt: null, isPiName: false };
}

function isoOf(text: string): string | null {
  const iso = text.replace(/T(\d\d)-(\d\d)-(\d\d)/, "T$1:$2:$3");
  return Number.isFinite(Date.parse(iso)) ? iso : null;
}

function decodeTopic(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // Another program created the name without percent-encoding.
    return text;
  }
}

/** The path states the agent after its last `agents` folder. Null means that it states no valid agent id. */
export function agentOfSessionsDir(path: string): string | null {
  const segments = path.split(/[/\\]/).filter((segment) => segment !== "" && segment !== ".");
  const at = segments.lastIndexOf("agents");
  const agentId = at === -1 ? undefined : segments[at + 1];
  return agentId !== undefined && isAgentId(agentId) ? agentId : null;
}

import { isAgentId, isSessionId } from "@throughline/core/internal";

/** What a file in a sessions directory is, by its name. */
type SessionFileKind =
  | "transcript"
  /** Archived by a reset or a deletion: a session that ended. */
  | "reset-archive"
  | "deleted-archive"
  | "index"
  | "backup"
  | "corrupt"
  /** A debug log beside a transcript. */
  | "trajectory"
  /** A copy from before a compaction. */
  | "checkpoint"
  | "temporary"
  | "lock"
  | "other";

/** What the name of a file in a sessions directory says of its content. */
export interface SessionFileName {
  /** What the file is. */
  readonly kind: SessionFileKind;
  /** For transcripts and archives; null when the name holds no usable id. */
  readonly sessionId: string | null;
  /** The topic in a name such as `<session>-topic-7.jsonl`, percent-decoded; null without one. */
  readonly topicId: string | null;
  /** When an archive was made, ISO 8601; null if the name has no time. */
  readonly archivedAt: string | null;
  /** True for pi's names, which put the time before the id. */
  readonly isPiName: boolean;
}

const piPattern = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:-\d+)?Z_(.+)$/;
const topicMark = "-topic-";

const otherKinds: readonly (readonly [RegExp, SessionFileKind])[] = [
  [/\.lock$/, "lock"],
  [/(^|[.-])(tmp|temp)$|\.tmp[.-]/, "temporary"],
  [/\.corrupt([.-]|$)/, "corrupt"],
  [/\.(bak|backup|orig)([.-]|$)|~$/, "backup"],
  // What a repair of ours writes beside the file it leaves alone.
  [/\.repaired\.jsonl$/, "backup"],
  [/\.trajectory(-path)?\.jsonl?$/, "trajectory"],
];

/** `<transcript>.jsonl.reset.<time>` and `<transcript>.jsonl.deleted`, by the last of such endings. */
function splitArchive(name: string): { base: string; kind: SessionFileKind; at: string | null } | null {
  const at = Math.max(name.lastIndexOf(".jsonl.reset"), name.lastIndexOf(".jsonl.deleted"));
  if (at < 1) return null;
  const base = name.slice(0, at + ".jsonl".length);
  const isReset = name.startsWith(".reset", base.length);
  const rest = name.slice(base.length + (isReset ? ".reset" : ".deleted").length);
  if (rest !== "" && (rest.length === 1 || !rest.startsWith("."))) return null;
  return { base, kind: isReset ? "reset-archive" : "deleted-archive", at: rest === "" ? null : rest.slice(1) };
}

function isCheckpoint(name: string): boolean {
  const at = name.indexOf(".checkpoint.") + ".checkpoint.".length;
  return at >= ".checkpoint.".length && name.endsWith(".jsonl") && name.length - ".jsonl".length > at;
}

/** Classifies a name, without its directory. */
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

/** The name an archive gets: colons are not allowed in file names everywhere. */
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
    // A name another program made, not percent-encoded.
    return text;
  }
}

/** The agent a sessions directory belongs to, by its path; null when the path does not say. */
export function agentOfSessionsDir(path: string): string | null {
  const segments = path.split(/[/\\]/).filter((segment) => segment !== "" && segment !== ".");
  const at = segments.lastIndexOf("agents");
  const agentId = at === -1 ? undefined : segments[at + 1];
  return agentId !== undefined && isAgentId(agentId) ? agentId : null;
}

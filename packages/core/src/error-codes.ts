import { encryptionErrorCodes } from "./encryption-error-codes.ts";
import { serviceErrorCodes } from "./service-error-codes.ts";

/**
 * Describes one error code: what happened, whether the same call may succeed when it is repeated, and what the reader
 * can do. `docs/errors.md` is checked against the table of all codes.
 */
export interface ErrorCodeEntry {
  /** States in one sentence what happened. */
  readonly summary: string;
  /** States whether the same call, unchanged, may succeed later. */
  readonly retryable: boolean;
  /** States in one sentence what to do about the error. */
  readonly remedy: string;
}

const table = {
  ABORTED: {
    summary: "The caller's signal ended the operation before it was done.",
    retryable: true,
    remedy: "Call again without aborting; a write that had begun says so in its outcome.",
  },
  AGENT_ID_INVALID: {
    summary: "An agent id does not match ^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$.",
    retryable: false,
    remedy: "Use letters, digits, '-' and '_', at most 64 characters, beginning with a letter or digit.",
  },
  APPEND_CONFLICT: {
    summary: "The head of the session is not the one the writer expected.",
    retryable: false,
    remedy: "Load the session, look at what was appended meanwhile, and append on the new head.",
  },
  APPROVAL_DECIDED: {
    summary: "Another decision on the tool call was stored first, or the call waits for none.",
    retryable: false,
    remedy: "List the calls that wait: `session.pendingApprovals`, or `throughline approvals KEY`.",
  },
  APPROVAL_PENDING: {
    summary: "Tool calls of the session wait for a decision, and the message would have refused them.",
    retryable: false,
    remedy: 'Decide with `session.resume({ approvals })`, or send the message without `whenWaiting: "reject"`.',
  },
  BATCH_TOO_LARGE: {
    summary: "One append holds more records or bytes than the store takes in a batch.",
    retryable: false,
    remedy: "Split the append; `capabilities.limits` states the largest batch.",
  },
  CAPABILITY_UNSUPPORTED: {
    summary: "The store, or the provider of the model, does not have the ability that was asked for.",
    retryable: false,
    remedy: "Look at `capabilities` first, or use a store or a model that has it.",
  },
  CODEC_FAILED: {
    summary: "The codec could not encode or decode a payload.",
    retryable: false,
    remedy: "Open the store with the codec and key that wrote it; nothing was changed.",
  },
  CONFIG_INVALID: {
    summary: "A configuration value is unknown or outside its range.",
    retryable: false,
    remedy: "Correct the value that the message names; `throughline config` lists the keys of configuration files.",
  },
  CONTEXT_OVERFLOW: {
    summary: "The request does not fit the model, and nothing the guard may shorten makes it fit.",
    retryable: false,
    remedy:
      "Compact the session, use a model with a larger window, or shorten the message; the details list every attempt.",
  },
  CURSOR_INVALID: {
    summary: "A list cursor was not made by this query of this store.",
    retryable: false,
    remedy: "Start the list again without a cursor.",
  },
  EMBEDDING_FAILED: {
    summary: "An embedder gave no vectors for texts.",
    retryable: true,
    remedy: "Look at the status and the text of its answer in the message; search finds words meanwhile.",
  },
  EMBEDDING_INVALID: {
    summary: "What an embedder answered cannot be used as vectors.",
    retryable: false,
    remedy: "Compare the model and the dimensions of the configuration with those of the embedder.",
  },
  EXPORT_EXISTS: {
    summary: "The file to export to exists already.",
    retryable: false,
    remedy: "Name another file or remove that one; an export never overwrites.",
  },
  FILE_NOT_FOUND: {
    summary: "A named file or directory, or a file with this id, does not exist.",
    retryable: false,
    remedy: "Check the path or the id; a store finds a file only for the agent and namespace that put it.",
  },
  FILE_TOO_LARGE: {
    summary: "A file has more bytes than the store or the caller allows.",
    retryable: false,
    remedy: "Send a smaller file, or raise `limits.fileBytes` of the store.",
  },
  FILE_UNREADABLE: {
    summary: "A named file exists but cannot be read.",
    retryable: false,
    remedy: "Check its permissions and that it is a regular file.",
  },
  FORMAT_UNKNOWN: {
    summary: "A file or directory is in no format that can be recognized.",
    retryable: false,
    remedy: "Name the format with --from; the file was not changed.",
  },
  IDEMPOTENCY_EXPIRED: {
    summary: "The idempotency key is older than what the store still remembers.",
    retryable: false,
    remedy: "Read the session to see whether the append was applied, then append with a new key.",
  },
  IDEMPOTENCY_MISMATCH: {
    summary: "The idempotency key was already used with other content.",
    retryable: false,
    remedy: "Use a new key for new content.",
  },
  ID_CASE_COLLISION: {
    summary: "An id differs from an existing one only by upper and lower case.",
    retryable: false,
    remedy: "Choose another id: on some file systems both would be the same file.",
  },
  INPUT_INVALID: {
    summary: "A value or a line of input cannot be used.",
    retryable: false,
    remedy: "Correct the named value or line; everything acknowledged before it stands.",
  },
  INTERNAL: {
    summary: "A rule inside Throughline was broken: this is a defect.",
    retryable: false,
    remedy: "Please report it with the message and the details.",
  },
  KEY_AGENT_MISMATCH: {
    summary: "The session key names another agent than the one in scope.",
    retryable: false,
    remedy: "Address the session through its own agent.",
  },
  KEY_INVALID: {
    summary: "A session key is empty, too long, or holds characters that no key may hold.",
    retryable: false,
    remedy: "Use agent:<agentId>:<rest> with at most 512 printable characters.",
  },
  MEMORY_SHORT: {
    summary: "What was asked for needs more memory than the process may use.",
    retryable: false,
    remedy:
      "Ask for less of the session, or give the process more memory: NODE_OPTIONS=--max-old-space-size=4096 (MiB).",
  },
  MODEL_FAILED: {
    summary: "The provider of a model rejected a call or did not answer it.",
    retryable: true,
    remedy:
      "Read the provider's words in the message. Try again where the error's own `retryable` is true: it is false where the provider rejected the request. The turn is stored, and `resume()` asks again.",
  },
  MODEL_KEY_MISSING: {
    summary: "The provider of a model needs an API key, and none was given.",
    retryable: false,
    remedy: "Set the environment variable that the message names, or pass the key as `apiKey`.",
  },
  MODEL_SDK_MISSING: {
    summary: "The package a model's provider offers for its API is not installed.",
    retryable: false,
    remedy: "Install the package that the message names.",
  },
  LEASE_LOST: {
    summary: "The lock of an agent ended while work ran under it, because its connection broke.",
    retryable: false,
    remedy: "Check what the work has changed before repeating it: another process may have worked at the same time.",
  },
  NAMESPACE_INVALID: {
    summary: "A namespace is neither empty nor a valid id.",
    retryable: false,
    remedy: "Use letters, digits, '.', '-' and '_', at most 128 characters.",
  },
  OUTPUT_INVALID: {
    summary: "The model's answer does not fit the schema of the turn's `output`, also after one request to correct it.",
    retryable: false,
    remedy:
      "Read `details.issues`, and describe the fields in the schema more closely or choose another model. The turn is closed and its replies are stored.",
  },
  PATH_UNSAFE: {
    summary: "A path leads outside its directory, or through a symbolic link.",
    retryable: false,
    remedy: "Use a regular file or directory inside the store.",
  },
  RECORD_FROM_NEWER_VERSION: {
    summary: "The session holds a record whose meaning this version does not know and may not skip.",
    retryable: false,
    remedy: "Upgrade Throughline to build a context; listing, showing and exporting still work.",
  },
  RECORD_ID_TAKEN: {
    summary: "The session already holds a record with this id.",
    retryable: false,
    remedy: "Leave the id out to have one made, or use a unique one.",
  },
  RECORD_INVALID: {
    summary: "A record draft is not a valid record.",
    retryable: false,
    remedy: "Correct the named field; nothing of the batch was applied.",
  },
  RECORD_NOT_FOUND: {
    summary: "The session holds no record with this id.",
    retryable: false,
    remedy: "List the records with `throughline show KEY --raw`.",
  },
  RECORD_TOO_LARGE: {
    summary: "A record is larger than the store takes.",
    retryable: false,
    remedy: "Shorten it or keep the large part outside; `capabilities.limits.recordBytes` states the limit.",
  },
  REVISION_CONFLICT: {
    summary: "The entry changed since it was loaded.",
    retryable: false,
    remedy: "Load it again, apply the change to the new entry, and save that with its revision.",
  },
  SEND_DENIED: {
    summary: "The send policy denies answers in the session; the message of the error says what is stored.",
    retryable: false,
    remedy:
      "`throughline policy KEY` shows what decides; `throughline entry KEY set sendPolicy allow` allows messages.",
  },
  SESSION_AMBIGUOUS: {
    summary: "The text fits more than one session.",
    retryable: false,
    remedy: "Give the whole key or id of one of the candidates.",
  },
  SESSION_ARCHIVED: {
    summary: "The session is archived and takes no writes.",
    retryable: false,
    remedy: "Restore it first, or write to the current session of its key.",
  },
  RUNTIME_UNSUPPORTED: {
    summary: "The runtime is too old for what the packages use.",
    retryable: false,
    remedy: "Install Node 22.18 or newer and run the program again; nothing was written.",
  },
  INSTALLATION_DAMAGED: {
    summary: "A part of what was installed is missing or cannot be loaded.",
    retryable: false,
    remedy:
      "Install it again: delete node_modules and run npm install. A global command is installed again as it was installed.",
  },
  SESSION_CLOSED: {
    summary: "The session, or the turn, was closed in this program.",
    retryable: false,
    remedy: "Open the session again, or open a new turn.",
  },
  SESSION_BUSY: {
    summary: "Another turn is open in this session.",
    retryable: true,
    remedy: "Try again when the other process has answered. The lock of a process that has ended expires.",
  },
  SESSION_EXISTS: {
    summary: "A session with this key or id exists already.",
    retryable: false,
    remedy: "Choose another key, or open the existing session.",
  },
  SESSION_ID_INVALID: {
    summary: "A session id does not match ^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$.",
    retryable: false,
    remedy: "Use a UUID, or letters, digits, '.', '-' and '_'.",
  },
  SESSION_NOT_FOUND: {
    summary: "The store holds no such session.",
    retryable: false,
    remedy: "List the sessions with `throughline sessions --all-agents --archived`.",
  },
  SESSION_PROTECTED: {
    summary: "The session is the main one of its agent, which is never deleted.",
    retryable: false,
    remedy: "Reset it instead: that archives what it holds and begins a new one.",
  },
  SESSION_REPLACED: {
    summary: "Another program reset the session that is open here. Its key has a new session now.",
    retryable: false,
    remedy:
      "Call `acceptReset()` to continue in the new session. The earlier one is archived: `throughline sessions --archived` lists it.",
  },
  SOURCE_CHANGED: {
    summary: "A file that was imported before has changed in the part already imported.",
    retryable: false,
    remedy: "Import it under another key to keep both versions.",
  },
  SPAWN_REFUSED: {
    summary: "A session may spawn no further session: too deep, too many, or its lineage is circular.",
    retryable: false,
    remedy: "Archive children that are done, or raise the limit that `details.reason` names.",
  },
  STORE_CLOSED: {
    summary: "The store handle was closed.",
    retryable: false,
    remedy: "Open the store again.",
  },
  STORE_CORRUPT: {
    summary: "The store holds something that cannot be what it wrote.",
    retryable: false,
    remedy: "Run `throughline doctor`; nothing was overwritten.",
  },
  STORE_FOREIGN: {
    summary: "The place of the store holds a database of another program.",
    retryable: false,
    remedy: "Name another place for the store; the database was not changed.",
  },
  STORE_FULL: {
    summary: "The disk is full.",
    retryable: true,
    remedy: "Free some space and retry; what was acknowledged is intact.",
  },
  STORE_IO: {
    summary: "The operating system refused a read or a write.",
    retryable: false,
    remedy:
      "Look at the cause. If the outcome is unknown, as after a failed flush, repeat the write with the same idempotency key: the store puts it on the disk again, or fails again.",
  },
  STORE_LOCKED: {
    summary: "Another process held the lock until the deadline.",
    retryable: true,
    remedy: "Try again: a lock is held for one write. If it stays, close the programs that use the store.",
  },
  STORE_NOT_FOUND: {
    summary: "The store does not exist.",
    retryable: false,
    remedy: "Check the URL; commands that write create a store, commands that read do not.",
  },
  STORE_OVERLOADED: {
    summary: "More operations wait for the store's server than it takes.",
    retryable: true,
    remedy: "Wait and try again, with fewer operations at once or more connections.",
  },
  STORE_READ_ONLY: {
    summary: "The store cannot be written by this user.",
    retryable: false,
    remedy: "Check the permissions of the named file.",
  },
  STORE_UNREACHABLE: {
    summary: "The store's server cannot be reached, or the connection to it broke off.",
    retryable: true,
    remedy:
      "Look at the server and the network; a write whose outcome is unknown is repeated with its idempotency key only.",
  },
  STORE_UNSUPPORTED: {
    summary: "This build has no store for the URL's scheme, or the store cannot work in that place.",
    retryable: false,
    remedy: "Use one of the schemes that the message names, or the place it asks for.",
  },
  STORE_URL_INVALID: {
    summary: "A store URL cannot be read.",
    retryable: false,
    remedy: "Use sqlite:FILE, jsonl:DIRECTORY, postgres://user:password@host/database or memory:.",
  },
  STORE_VERSION_UNSUPPORTED: {
    summary: "The store was written by a newer version.",
    retryable: false,
    remedy: "Upgrade Throughline; the store was not changed.",
  },
  SUMMARIZER_PAUSED: {
    summary: "A summarizer or an embedder failed several times in a row and is not asked for a while.",
    retryable: true,
    remedy:
      "Wait until the time in the details, or fix the cause of its failures. The other summarizers of the chain are used meanwhile.",
  },
  SUMMARY_FAILED: {
    summary: "No summarizer gave a summary that can be used.",
    retryable: true,
    remedy: "Look at the attempts in the details; the conversation is unchanged.",
  },
  SUMMARY_REJECTED: {
    summary: "What a summarizer wrote cannot stand for the conversation.",
    retryable: true,
    remedy: "Ask another summarizer; the details say what is wrong with the text.",
  },
  TURN_FENCED: {
    summary: "The turn was taken over by another; its writes are no longer accepted.",
    retryable: false,
    remedy: "Load the session and begin a new turn.",
  },
  USAGE: {
    summary: "The command line is wrong.",
    retryable: false,
    remedy: "See the command's --help.",
  },
} as const;

/** Names one error code of `errorCodes`. */
export type ErrorCode = keyof typeof table | keyof typeof encryptionErrorCodes | keyof typeof serviceErrorCodes;

/** Holds every error code with its summary, its remedy, and whether to retry. */
export const errorCodes: Readonly<Record<ErrorCode, ErrorCodeEntry>> = {
  ...table,
  ...encryptionErrorCodes,
  ...serviceErrorCodes,
};

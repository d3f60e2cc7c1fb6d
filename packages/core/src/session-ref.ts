import { assertKnownOptions, optionKinds, type OptionTable } from "./option-checks.ts";
import { assertAgentId, assertNamespace, quote } from "./session-id.ts";
import { parseSessionKey } from "./session-key.ts";
import { ThroughlineError } from "./throughline-error.ts";

/**
 * Holds the address of a session, which is the primary key of every table. `archiveId` addresses an archived session of
 * the key instead of the current session.
 */
export interface SessionRef {
  /** Separates tenants that share one store. The default is the empty text. */
  readonly namespace: string;
  /** Names the agent of the session. */
  readonly agentId: string;
  /** Holds the session's key, which is opaque to stores. */
  readonly key: string;
  /** States the session id of an archived session. Absent means the current session of the key. */
  readonly archiveId?: string;
}

/** Holds the parts of a session's address; `sessionRef` fills in the absent parts. */
export interface SessionAddress {
  /** Holds the session key, in any form. */
  readonly key: string;
  /** Names the agent of the session. @default the agent the key names, else "main" */
  readonly agentId?: string;
  /** Names the namespace of the session. @default "" */
  readonly namespace?: string;
  /** States the session id of an archived session. Absent means the current session of the key. */
  readonly archiveId?: string;
}

const { any } = optionKinds;
// Each part has its own error code, so only unknown names are refused here.
const addressTable: OptionTable<SessionAddress> = { key: any, agentId: any, namespace: any, archiveId: any };

/**
 * Returns the address of a session. The agent comes from the key when the address names no agent.
 * @throws {ThroughlineError} INPUT_INVALID for a field that an address does not have; KEY_INVALID, KEY_AGENT_MISMATCH,
 * AGENT_ID_INVALID, NAMESPACE_INVALID
 */
export function sessionRef(address: SessionAddress): SessionRef {
  assertKnownOptions<SessionAddress>("sessionRef", address, addressTable, "address");
  const named = parseSessionKey(address.key).agentId;
  const agentId = address.agentId ?? named ?? "main";
  assertAgentId(agentId);
  assertNamespace(address.namespace ?? "");
  if (named !== null && named !== agentId) {
    throw new ThroughlineError(
      "KEY_AGENT_MISMATCH",
      `The key ${quote(address.key)} belongs to agent ${quote(named)}, not to ${quote(agentId)}.`,
      { outcome: "not-applied", details: { key: address.key, keyAgentId: named, agentId } },
    );
  }
  const ref = { namespace: address.namespace ?? "", agentId, key: address.key };
  return address.archiveId === undefined ? ref : { ...ref, archiveId: address.archiveId };
}

/** Returns one text per address, for maps. The text is not meant for people or for paths. */
export function sessionRefText(ref: SessionRef): string {
  return JSON.stringify([ref.namespace, ref.agentId, ref.key, ref.archiveId ?? null]);
}

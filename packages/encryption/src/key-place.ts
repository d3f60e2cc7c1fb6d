/** The payloads that share a data key. Empty texts stand for what the scope of the keyring leaves out. */
export interface KeyPlace {
  readonly namespace: string;
  readonly agentId: string;
  readonly sessionId: string;
}

/** Takes the place of the session for the key of an index of words. No agent is named "", so it is no session's place. */
const indexName = "search index";

/** A key of an index decrypts nothing, so no count has it. Once it is destroyed, its row has no agent. */
export const isOfIndex: string = `(coalesce(agent_id, '') = '' AND coalesce(session_id, '') = '${indexName}')`;

/** Returns the place of the key that makes the tokens of a namespace. */
export function indexPlace(namespace: string): KeyPlace {
  return { namespace, agentId: "", sessionId: indexName };
}

/** Names the secret of a data key, so that a row that was moved to another key or session does not open. */
export function nameOf(
  keyringId: string,
  id: Uint8Array,
  { namespace, agentId, sessionId }: KeyPlace,
): readonly string[] {
  return [keyringId, "data key", Buffer.from(id).toString("hex"), namespace, agentId, sessionId];
}

export function placeOf(row: Readonly<Record<string, unknown>>): KeyPlace {
  return {
    namespace: String(row["namespace"]),
    agentId: String(row["agent_id"]),
    sessionId: String(row["session_id"]),
  };
}

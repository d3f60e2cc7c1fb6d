/**
 * These keys of other programs' configurations have no effect here, each for the stated reason. A note reports them, so
 * that an existing configuration still loads.
 */
export const foreignKeys: Readonly<Record<string, string>> = {
  "session.dmScope": "a program that receives messages names the key of each; `peerSessionKey` of core takes dmScope",
  "session.identityLinks": "a program that receives messages decides whose they are, and names the key of each",
  "session.mainKey": "`chat` opens the session of session.defaultKey, a whole key such as agent:main:main",
  "session.maintenance": "nothing is removed by itself; `prune` archives and purges by age, number and size",
  "session.resetTriggers": "in `chat`, /new and /reset begin a new session whatever the configuration says",
  "session.scope": "each key has a session of its own, and session.defaultKey names the one that `chat` opens",
};

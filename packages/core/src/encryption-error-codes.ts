/** The encryption of stores throws these errors, which extend the table of `error-codes.ts`. */
export const encryptionErrorCodes = {
  KEYRING_DAMAGED: {
    summary: "The file is not a keyring, or is damaged or of a newer version.",
    retryable: false,
    remedy: "Restore the newest copy of the keyring; without it the encrypted data cannot be read.",
  },
  KEYRING_EXISTS: {
    summary: "There is a file where a keyring would be created.",
    retryable: false,
    remedy: "Open the keyring that is there, or name another path; a keyring is never overwritten.",
  },
  KEYRING_IO: {
    summary: "The keyring could not be read or written, so no key was made.",
    retryable: false,
    remedy:
      "Look at the reason in the message: free space, permissions, or a process that holds the file; then call again.",
  },
  KEYRING_NOT_FOUND: {
    summary: "There is no keyring at the path.",
    retryable: false,
    remedy: "Name the keyring that the store was written with, or create one for a new store with `createKeyring`.",
  },
  KEY_DESTROYED: {
    summary: "The key of the payload was destroyed, so nothing can read it.",
    retryable: false,
    remedy: "Remove the session; its content was erased on purpose.",
  },
  KEY_MISSING: {
    summary: "The keyring does not have the key of a payload.",
    retryable: false,
    remedy: "Open the store with the keyring that it was written with, or with a newer copy of it.",
  },
  MAIN_KEY_WRONG: {
    summary: "The passphrase, main key or recovery key does not open the keyring.",
    retryable: false,
    remedy: "Use the main key of this keyring, or the recovery key that its creation printed.",
  },
  PAYLOAD_ALTERED: {
    summary: "An encrypted payload was changed, cut, or moved from another place.",
    retryable: false,
    remedy: "Restore it from a backup; `store.maintenance.verify()` finds what cannot be read.",
  },
  SESSION_SHARED: {
    summary: "Other sessions share records of a session that is to be erased.",
    retryable: false,
    remedy: "Erase the sessions in the details, too, or let them keep the records under their own keys (`keepForks`).",
  },
} as const;

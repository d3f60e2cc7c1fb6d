export type { Encryption, ErasureProof, ErasureTarget, KeyringStatus } from "./encryption.ts";
export { eraseSessions, resumeErasures } from "./erase-sessions.ts";
export type { MainKey } from "./main-key.ts";
export {
  createKeyring,
  type CreateKeyringOptions,
  openEncryption,
  type OpenEncryptionOptions,
} from "./open-encryption.ts";

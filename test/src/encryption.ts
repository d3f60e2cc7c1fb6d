export { describeEncryptedStore, formsIn } from "./describe-encrypted-store.ts";
export { encryptedRunner, encryptionForTests } from "./encrypted-kit.ts";

import process from "node:process";
import { openEncryption } from "@throughline/encryption";

/** Opens the keyring that the argument names, and prints its id. */
const codec = await openEncryption({ keyring: process.argv[2] ?? "", mainKey: { key: Buffer.alloc(32, 7) } });
process.stdout.write(codec.status().keyringId);
codec.close();

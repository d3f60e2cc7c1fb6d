import { describeStoreConformance } from "@throughline/store-conformance";
import { describeEncryptedStore, encryptedRunner, encryptionForTests } from "@throughline/test-kit/encryption";
import { openUnderTest } from "./store-under-test.ts";

const encryption = await encryptionForTests();

describeStoreConformance({
  name: "store-jsonl",
  runner: encryptedRunner(),
  open: () => openUnderTest(),
  openWithCodec: (codec) => openUnderTest({ codec }),
  codec: encryption,
});

describeEncryptedStore({ name: "store-jsonl", encryption, open: (codec) => openUnderTest({ codec }) });

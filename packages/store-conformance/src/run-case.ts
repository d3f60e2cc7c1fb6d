import type { ConformanceCase } from "./conformance-case.ts";
import type { ConformanceAbility, ConformanceSetup, StoreUnderTest } from "./store-under-test.ts";

/**
 * Runs one case on its own store. Returns the reason when the case does not apply, otherwise null.
 * @throws what the case throws
 */
export async function runCase(conformanceCase: ConformanceCase, setup: ConformanceSetup): Promise<string | null> {
  const opened: StoreUnderTest[] = [];
  const under = await setup.open();
  opened.push(under);
  try {
    const missing = conformanceCase.needs?.find((ability) => !offers(setup, under, ability));
    if (missing !== undefined) return `the setup offers no ${missing}`;
    if (conformanceCase.requires?.(under.store.capabilities) === false)
      return "the store does not declare what the case is about";
    await conformanceCase.run({
      under,
      store: under.store,
      openWithCodec: async (codec) => {
        if (setup.openWithCodec === undefined) throw new Error("A case that opens with a codec must declare the need.");
        const coded = await setup.openWithCodec(codec);
        opened.push(coded);
        return coded;
      },
    });
    return null;
  } finally {
    for (const each of opened) await each.dispose();
  }
}

function offers(setup: ConformanceSetup, under: StoreUnderTest, ability: ConformanceAbility): boolean {
  if (ability === "codec") return setup.openWithCodec !== undefined;
  if (ability === "exclusively") return under.store.exclusively !== undefined;
  return under[ability] !== undefined;
}

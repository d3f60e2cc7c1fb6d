import { type ComponentType, h, type JSX } from "preact";
import { useLoad } from "../use-load.ts";
import { FailedState, LoadingRows } from "./states.tsx";

interface LazyProps<Props> {
  readonly load: () => Promise<{ readonly Page: ComponentType<Props> }>;
  readonly props: Props;
}

const loadedPages = new Map<string, ComponentType<never>>();

/** Loads the code of a page on its first use. */
export function LazyPage<Props extends object>({ load, props }: LazyProps<Props>): JSX.Element {
  const name = load.toString();
  const known = loadedPages.get(name) as ComponentType<Props> | undefined;
  const { loaded, reload } = useLoad(known === undefined ? name : null, async () => {
    const { Page } = await load();
    loadedPages.set(name, Page as ComponentType<never>);
    return Page;
  });
  if (known !== undefined) return h(known, props);
  if (loaded.state === "done") return h(loaded.value, props);
  return (
    <main class="page" id="main">
      {loaded.state === "failed" ? <FailedState error={loaded.error} reload={reload} /> : <LoadingRows />}
    </main>
  );
}

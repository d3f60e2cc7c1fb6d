export { setup } from "../../store-postgres/test/global-setup.ts";

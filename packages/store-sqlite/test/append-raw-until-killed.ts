// The control of append-until-killed.ts: SQLite with the same pragmas and two rows a commit, and nothing of the store.
// With "read" it prints what is there instead.
import process from "node:process";
import Database from "better-sqlite3";

const [path = "", sizeText = "200"] = process.argv.slice(2);
const database = new Database(path);
database.pragma("journal_mode = WAL");
database.pragma("synchronous = FULL");
database.exec("CREATE TABLE IF NOT EXISTS rows (seq INTEGER PRIMARY KEY, life TEXT, text TEXT)");
if (sizeText === "read") {
  const rows = database.prepare("SELECT seq, life FROM rows").all() as {
    readonly seq: number;
    readonly life: string;
  }[];
  process.stdout.write(rows.map(({ seq, life }) => `${seq}:${life}\n`).join(""));
} else {
  const insert = database.prepare("INSERT INTO rows (life, text) VALUES (?, ?)");
  const text = "x".repeat(Number(sizeText));
  // A row that was lost must not be taken for the one that got its number in the next life.
  const life = `${process.pid}-${Date.now()}`;
  const row = (): string => `${insert.run(life, text).lastInsertRowid}:${life}`;
  const commit = database.transaction(() => `${row()} ${row()}`);
  for (;;) {
    process.stdout.write(`${commit()}\n`);
    await new Promise((resolve) => void setImmediate(resolve));
  }
}

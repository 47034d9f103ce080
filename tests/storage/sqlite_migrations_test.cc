#include "storage/sqlite/connection.h"
#include "storage/sqlite/migrations.h"
#include "tests/storage/records.h"
#include "tests/support/process.h"

namespace regatta::testing {
namespace {

TEST(Migrate, RunsWhatIsMissingAndKeepsWholeVersions) {
  const TempDir dir;
  const auto db = sqlite::Connection::Open(dir.path() + "/db",
                                           sqlite::Connection::Mode::kCreate)
                      .value();
  const char* const one[] = {"CREATE TABLE a(x); INSERT INTO a VALUES (1)"};
  const char* const broken[] = {one[0], "CREATE TABLE b(x); no SQL"};
  const char* const mended[] = {one[0], "CREATE TABLE b(x)",
                                "INSERT INTO b SELECT x + 1 FROM a"};
  ASSERT_OK(sqlite::Migrate(*db, one));
  ASSERT_OK(sqlite::Migrate(*db, one));
  EXPECT_EQ(db->Number("SELECT count(*) FROM a").value(), 1);
  EXPECT_FALSE(sqlite::Migrate(*db, broken).ok());
  EXPECT_EQ(db->Number("PRAGMA user_version").value(), 1);
  EXPECT_FALSE(db->InTransaction());
  ASSERT_OK(sqlite::Migrate(*db, mended));
  EXPECT_EQ(db->Number("PRAGMA user_version").value(), 3);
  EXPECT_EQ(db->Number("SELECT x FROM b").value(), 2);
}

}  // namespace
}  // namespace regatta::testing

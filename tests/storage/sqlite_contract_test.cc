#include "tests/storage/tuning_log_contract.h"
#include "tests/support/process.h"

namespace regatta::testing {
namespace {

class SqlitePlace : public LogPlace {
 public:
  std::string Location() const override {
    return "sqlite:" + dir_.path() + "/tuning.log";
  }

 private:
  TempDir dir_;
};

INSTANTIATE_TEST_SUITE_P(
    Sqlite, TuningLogContract,
    ::testing::Values(LogBackend{
        .name = "sqlite",
        .make_place = [] { return std::make_unique<SqlitePlace>(); }}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace regatta::testing

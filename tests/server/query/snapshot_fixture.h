// A snapshot of a planted log, for tests of snapshots.
#ifndef REGATTA_TESTS_SERVER_QUERY_SNAPSHOT_FIXTURE_H_
#define REGATTA_TESTS_SERVER_QUERY_SNAPSHOT_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/query/best_file.h"
#include "server/query/snapshot.h"
#include "server/server_snapshot.h"
#include "tests/server/query/planted_log.h"
#include "tests/server/support/spaces.h"
#include "tests/support/process.h"

namespace regatta {

inline constexpr char kCompiler[] = "0123456789abcdef/LLVM 19.1.7";

inline absl::StatusOr<Target> Complete(const Target& target) {
  if (target.mcpu.empty()) return absl::InvalidArgumentError("mcpu is missing");
  return target;
}
inline absl::StatusOr<std::string> Version(const Target&) { return kCompiler; }

inline BestFileOptions FileOptions() {
  return {.complete = Complete, .compiler_version = Version};
}

inline SnapshotOptions WriteOptions() {
  return {.compiler_version = kCompiler,
          .make_target = MakeTargetWith(Complete, Version)};
}

class SnapshotTest : public ::testing::Test {
 protected:
  SnapshotTest() {
    log_ = Plant("one.db");
    const auto bytes = WriteSnapshot(*log_, WriteOptions());
    CHECK(bytes.ok()) << bytes.status();
    bytes_ = *bytes;
  }

  std::unique_ptr<TuningLog> Plant(const std::string& name) {
    auto log = OpenTuningLog(Path(name));
    CHECK(log.ok()) << log.status();
    testing::PlantLog(**log, kCompiler);
    return *std::move(log);
  }
  std::string Path(const std::string& name) const {
    return absl::StrCat(dir_.path(), "/", name);
  }
  std::unique_ptr<BestFile> OpenBytes(const std::string& bytes) {
    testing::WriteFile(Path("best.rgs"), bytes);
    auto file = BestFile::OpenSnapshot(Path("best.rgs"), FileOptions());
    CHECK(file.ok()) << file.status();
    return *std::move(file);
  }

  testing::TempDir dir_;
  std::unique_ptr<TuningLog> log_;
  std::string bytes_;
};

// Its answer to every planted question.
inline std::vector<std::string> AskFile(BestFile& file) {
  std::vector<std::string> answers;
  for (const v1::BestRequest& question : testing::PlantedQuestions()) {
    answers.push_back(testing::Line(file.Answer(question, 5)));
  }
  return answers;
}

}  // namespace regatta

#endif  // REGATTA_TESTS_SERVER_QUERY_SNAPSHOT_FIXTURE_H_

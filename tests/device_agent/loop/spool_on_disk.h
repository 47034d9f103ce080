// Spools on a disk in memory.
#ifndef REGATTA_TESTS_DEVICE_AGENT_LOOP_SPOOL_ON_DISK_H_
#define REGATTA_TESTS_DEVICE_AGENT_LOOP_SPOOL_ON_DISK_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device_agent/loop/spool.h"
#include "gtest/gtest.h"
#include "tests/device_agent/loop/fake_spool_storage.h"

namespace regatta {

inline v1::SpooledResult MakeResult(const std::string& trial, int attempt = 1,
                                    size_t padding = 0) {
  v1::SpooledResult spooled;
  spooled.set_assignment_id("a-" + trial);
  spooled.mutable_result()->mutable_spec()->set_trial_id(trial);
  spooled.mutable_result()->set_attempt(attempt);
  spooled.mutable_result()->set_detail(std::string(padding, 'x'));
  return spooled;
}

inline std::unique_ptr<Spool> OpenOrDie(FakeDisk* disk,
                                        SpoolLimits limits = {}) {
  auto spool = Spool::Open(std::make_unique<FakeSpoolStorage>(disk), limits);
  EXPECT_TRUE(spool.ok()) << spool.status();
  return *std::move(spool);
}

inline std::vector<std::string> Trials(Spool& spool) {
  std::vector<std::string> trials;
  Spool::Sequence from = 0;
  while (auto entry = spool.Next(from)) {
    trials.push_back(entry->result.result().spec().trial_id());
    from = entry->sequence + 1;
  }
  return trials;
}

// A disk with synced results t0, t1, ...
inline FakeDisk DiskWith(int results) {
  FakeDisk disk;
  auto spool = OpenOrDie(&disk);
  for (int i = 0; i < results; ++i) {
    EXPECT_TRUE(spool->Append(MakeResult(absl::StrCat("t", i))).ok());
  }
  EXPECT_TRUE(spool->Sync().ok());
  return disk;
}

}  // namespace regatta

#endif  // REGATTA_TESTS_DEVICE_AGENT_LOOP_SPOOL_ON_DISK_H_

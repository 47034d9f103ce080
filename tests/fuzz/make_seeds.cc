// Writes the seeds in tests/fuzz/corpus that no person can type. To be run when
// a format changes:
//   fuzz_make_seeds tests/fuzz/corpus
#include <cstdint>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/module/cuda_binary.h"
#include "compiler/module/module.h"
#include "compiler/ops/op.h"
#include "compiler/space/space.h"
#include "device_agent/loop/spool.h"
#include "regatta/v1/worker.pb.h"
#include "server/job/checkpoint.h"
#include "server/query/best_memo.h"
#include "server/query/snapshot_writer.h"
#include "storage/log_line.h"
#include "storage/tuning_log.h"
#include "tests/compiler/sample_module.h"
#include "tests/device_agent/loop/fake_spool_storage.h"
#include "tests/server/query/planted_log.h"
#include "tests/support/process.h"

namespace regatta {
namespace {

class SeedFolder {
 public:
  explicit SeedFolder(std::string path) : path_(std::move(path)) {}
  void Write(const std::string& fuzzer, const std::string& name,
             std::string_view bytes) const {
    const std::string file = absl::StrCat(path_, "/", fuzzer, "/", name);
    std::ofstream stream(file, std::ios::binary);
    stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    CHECK(stream.good()) << "cannot write " << file;
  }

 private:
  std::string path_;
};

void WriteModules(const SeedFolder& out) {
  out.Write("module", "module", SerializeModule(SampleModule()));
  out.Write("module", "cuda_binary",
            SerializeCudaBinary({"sm_80",
                                 "\x7f"
                                 "ELF",
                                 ".version 8.0\n"}));
}

// Each space's first byte is its number in schedule_fuzzer.cc.
void WriteSchedules(const SeedFolder& out) {
  const auto workload = ParseWorkload("matmul(m=17,n=24,k=32)");
  CHECK(workload.ok()) << workload.status();
  const char* const targets[] = {
      "cpu,triple=x86_64-linux-gnu,mcpu=znver4,vector_bits=512,"
      "vector_registers=32,products=ui8x4",
      "opencl,vector_bits=128,max_group=256,local_bytes=32768"};
  for (int t = 0; t < 2; ++t) {
    const auto target = ParseTarget(targets[t]);
    CHECK(target.ok()) << target.status();
    const auto space =
        Space::Create({.workload = *workload, .target = *target, .threads = 2});
    CHECK(space.ok()) << space.status();
    Random random(1);
    for (int i = 0; i < 3; ++i) {
      const auto schedule = space->Sample(random);
      CHECK(schedule.has_value());
      out.Write("schedule", absl::StrCat(target->kind, i),
                absl::StrCat(std::string(1, static_cast<char>(5 * t)),
                             space->Print(*schedule)));
    }
  }
}

v1::SpooledResult SampleResult(int n) {
  v1::SpooledResult spooled;
  spooled.set_assignment_id("log1/1/0/0");
  spooled.set_last(n == 1);
  v1::TrialResult& result = *spooled.mutable_result();
  result.mutable_spec()->set_trial_id(absl::StrCat("1/0/", n));
  result.mutable_spec()->set_workload("matmul(m=4,n=4,k=4)");
  result.set_attempt(1);
  result.set_outcome(v1::OUTCOME_OK);
  return spooled;
}

void WriteSpool(const SeedFolder& out) {
  FakeDisk disk;
  auto spool = Spool::Open(std::make_unique<FakeSpoolStorage>(&disk), {});
  CHECK(spool.ok()) << spool.status();
  for (int n = 0; n < 2; ++n) CHECK((*spool)->Append(SampleResult(n)).ok());
  (*spool)->Forget("1/0/0", 1);
  CHECK((*spool)->Sync().ok());
  out.Write("spool", "two_results", disk.content);
}

void WriteFrames(const SeedFolder& out) {
  std::string frames;
  for (int n = 0; n < 2; ++n) {
    v1::RunResponse response;
    response.mutable_failure()->set_detail("crashed");
    const std::string bytes = response.SerializeAsString();
    const auto size = static_cast<uint32_t>(bytes.size());
    for (int b = 0; b < 4; ++b) {
      frames.push_back(static_cast<char>(size >> (8 * b)));
    }
    frames += bytes;
  }
  out.Write("frame", "two_frames", frames);
}

void WriteLog(const SeedFolder& out) {
  testing::TempDir dir;
  auto log = OpenTuningLog(dir.path() + "/log.db");
  CHECK(log.ok()) << log.status();
  testing::PlantLittle(**log, "0123456789abcdef/LLVM 19.1.7");
  const auto complete = [](const Target& target) -> absl::StatusOr<Target> {
    return target;
  };
  const auto version = [](const Target&) -> absl::StatusOr<std::string> {
    return std::string("0123456789abcdef/LLVM 19.1.7");
  };
  const auto snapshot =
      WriteSnapshot(**log, {.compiler_version = "0123456789abcdef/LLVM 19.1.7",
                            .make_target = MakeTargetWith(complete, version)});
  CHECK(snapshot.ok()) << snapshot.status();
  out.Write("snapshot", "little", *snapshot);

  v1::LogEntry entry;
  *entry.mutable_record()->mutable_result() = SampleResult(0).result();
  out.Write("log_line", "record", PrintLogLine(entry));
}

void WriteJobs(const SeedFolder& out) {
  TaskCheckpoint task;
  task.target = "cpu,mcpu=znver4";
  task.compiler = "c1";
  task.finalists = {"loops{vec=16}"};
  task.round =
      RoundCheckpoint{{{"1/0/3", "loops{vec=8}", RoundRole::kDefault}}};
  task.in_flight.push_back(
      {v1::TRIAL_KIND_CANDIDATE, {{4, "loops{vec=4}", 1000}}});
  out.Write("job_text", "checkpoint", PrintCheckpoint({task}));
  out.Write("job_text", "jobs_file",
            R"json({"tasks": [{"workload": "matmul(m=8,n=8,k=8)",
 "weight": 2, "symbol": "mm", "device_classes": ["znver4-2c"],
 "budget": {"minutes": 2}}]})json");
}

}  // namespace
}  // namespace regatta

int main(int argc, char** argv) {
  using namespace regatta;
  if (argc != 2) {
    std::cerr << "usage: fuzz_make_seeds FOLDER\n";
    return 2;
  }
  const SeedFolder out(argv[1]);
  WriteModules(out);
  WriteSchedules(out);
  WriteSpool(out);
  WriteFrames(out);
  WriteLog(out);
  WriteJobs(out);
  return 0;
}

// What is kept of jobs and what people write of them: checkpoints and jobs
// files.
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "client/cli/jobs_file.h"
#include "server/job/checkpoint.h"
#include "tests/fuzz/fuzz_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace regatta;
  const std::string_view text = fuzz::TextOf(data, size);
  if (const auto tasks = ParseCheckpoint(text); tasks.ok()) {
    const std::string printed = PrintCheckpoint(*tasks);
    const auto again = ParseCheckpoint(printed);
    CHECK(again.ok()) << printed << ": " << again.status();
    CHECK(PrintCheckpoint(*again) == printed) << printed;
  }
  std::vector<std::string> symbols;
  const auto job = cli::ParseJobsFile("jobs.json", text, &symbols);
  if (job.ok()) {
    CHECK(job->tasks_size() == static_cast<int>(symbols.size())) << text;
  } else {
    CHECK(!job.status().message().empty());
  }
  return 0;
}

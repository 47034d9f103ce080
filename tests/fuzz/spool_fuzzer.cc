// A spool's file as a crash or a bad disk may leave it: what can be read is
// handed out, new results join it, and opening again finds the same.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "device_agent/loop/spool.h"
#include "tests/device_agent/loop/fake_spool_storage.h"
#include "tests/fuzz/fuzz_text.h"

namespace regatta {
namespace {

std::unique_ptr<Spool> OpenOn(FakeDisk* disk) {
  auto spool = Spool::Open(std::make_unique<FakeSpoolStorage>(disk), {});
  return spool.ok() ? *std::move(spool) : nullptr;
}

std::vector<std::string> Contents(Spool& spool) {
  std::vector<std::string> all;
  Spool::Sequence from = 0;
  while (const auto entry = spool.Next(from)) {
    all.push_back(entry->result.SerializeAsString());
    from = entry->sequence + 1;
  }
  return all;
}

}  // namespace
}  // namespace regatta

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace regatta;
  FakeDisk disk;
  disk.content = disk.durable = std::string(fuzz::TextOf(data, size));
  const auto spool = OpenOn(&disk);
  if (spool == nullptr) {
    CHECK(disk.content == fuzz::TextOf(data, size)) << "a foreign file changed";
    return 0;
  }
  v1::SpooledResult fresh;
  fresh.set_assignment_id("log/1/0/0");
  fresh.mutable_result()->mutable_spec()->set_trial_id("fresh");
  CHECK(spool->Append(fresh).ok());
  CHECK(spool->Sync().ok());
  const std::vector<std::string> before = Contents(*spool);
  CHECK(!before.empty() && before.back() == fresh.SerializeAsString());
  const auto again = OpenOn(&disk);
  CHECK(again != nullptr);
  CHECK(Contents(*again) == before);
  spool->Finished(10);
  spool->Forget("fresh", 0);
  CHECK(Contents(*spool).size() + 1 <= before.size());
  return 0;
}

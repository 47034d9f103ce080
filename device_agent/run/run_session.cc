#include "device_agent/run/run_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/module/c_interface.h"
#include "device_agent/run/crash_report.h"
#include "device_agent/sandbox/sandbox.h"
#include "device_agent/spawner/memory_file.h"
#include "device_agent/verify/input_data.h"
#include "device_agent/verify/output_check.h"

namespace regatta {
namespace {

// Not-a-number in every float type, and another value that no result is; two,
// so that no integer result can equal both.
constexpr uint8_t kFirstPoison = 0xFF;
constexpr uint8_t kLastPoison = 0x7F;
// What the workspace needs, and what callers who care for speed give tensors,
// whatever less a module would accept.
constexpr int64_t kAlignment = 64;

int64_t Elements(const ModuleBuffer& buffer) {
  return buffer.bytes / DTypeBytes(buffer.dtype);
}

std::string CallError(int code) {
  switch (code) {
    case kCallNoMemory:
      return "no memory for its workspace";
    case kCallNullArgument:
      return "a null argument";
    case kCallMisaligned:
      return "a misaligned argument";
    default:
      return "an unknown code";
  }
}

}  // namespace

absl::Status RunSession::Run() {
  std::vector<UniqueFd> descriptors;
  ASSIGN_OR_RETURN(request_,
                   agent_.ReceiveMessage<v1::RunRequest>(&descriptors));
  const int64_t started = clock_.Steady().ns;
  if (descriptors.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a RunRequest with ", descriptors.size(), " descriptors beside it"));
  }
  const int file = descriptors[1].get();
  InstallCrashReports();
  const absl::Status prepared = Prepare(std::move(descriptors));
  if (absl::IsResourceExhausted(prepared)) {
    return Fail(v1::OUTCOME_OUT_OF_MEMORY, std::string(prepared.message()));
  }
  RETURN_IF_ERROR(prepared);
  absl::StatusOr<LoadedModule> loaded = LoadedModule::Load(module_);
  if (!loaded.ok()) {
    return Fail(v1::OUTCOME_CRASHED, std::string(loaded.status().message()));
  }
  loaded_ = *loaded;
  if (request_.make_reference()) return MakeReference(file);

  ASSIGN_OR_RETURN(const bool right, VerifyOrFail(kFirstPoison, ""));
  if (!right) return absl::OkStatus();
  v1::RunResponse response;
  response.mutable_verified()->set_max_error(max_error_);
  response.mutable_verified()->set_verify_ns(clock_.Steady().ns - started);
  RETURN_IF_ERROR(Send(response));
  return request_.interleave() ? TimeInterleaved() : TimeAlone();
}

absl::Status RunSession::Prepare(std::vector<UniqueFd> descriptors) {
  {
    ASSIGN_OR_RETURN(const MappedFile bytes,
                     MappedFile::Map(descriptors[0].get()));
    ASSIGN_OR_RETURN(module_, DeserializeModule(bytes.bytes()));
  }
  // Kept open by the mapping that MakeReference needs.
  const int file = descriptors[1].Release();
  if (request_.make_reference()) {
    ASSIGN_OR_RETURN(reference_, CreateReferenceFile(module_, file));
  } else {
    ASSIGN_OR_RETURN(reference_, OpenReferenceFile(module_, file));
  }
  for (const GuardedMemory& input : reference_.inputs) {
    pointers_.push_back(input.data());
    DescribeCrashesNear(&input);
  }
  for (const ModuleBuffer* output :
       module_.BuffersWithRole(BufferRole::kOutput)) {
    ASSIGN_OR_RETURN(
        GuardedMemory memory,
        GuardedMemory::Allocate("output " + output->name, output->bytes,
                                std::max(kAlignment, output->alignment)));
    pointers_.push_back(memory.data());
    outputs_.push_back(std::move(memory));
  }
  if (module_.workspace_bytes > 0) {
    ASSIGN_OR_RETURN(GuardedMemory memory,
                     GuardedMemory::Allocate(
                         "the workspace", module_.workspace_bytes, kAlignment));
    workspace_.push_back(std::move(memory));
  }
  for (const GuardedMemory& memory : outputs_) DescribeCrashesNear(&memory);
  for (const GuardedMemory& memory : workspace_) DescribeCrashesNear(&memory);
  for (const GuardedMemory& memory : reference_.outputs) {
    DescribeCrashesNear(&memory);
  }
  if (request_.cache() == v1::CACHE_STATE_COLD && request_.evict_bytes() > 0) {
    eviction_ = std::make_unique<CacheEviction>(request_.evict_bytes());
  }
  timer_ = std::make_unique<BlockTimer>(
      clock_, [this] { return Call(); },
      eviction_ == nullptr ? std::function<void()>()
                           : [this] { eviction_->Evict(); });
  return absl::OkStatus();
}

int RunSession::Call() {
  NoteCall(++calls_);
  return loaded_.entry()(pointers_.data(),
                         workspace_.empty() ? nullptr : workspace_[0].data());
}

std::string RunSession::VerifyOnce(uint8_t poison, int* error) {
  for (GuardedMemory& memory : outputs_) memory.Poison(poison);
  for (GuardedMemory& memory : workspace_) memory.Poison(poison);
  *error = Call();
  if (*error != 0) return "";
  const std::vector<const ModuleBuffer*> buffers =
      module_.BuffersWithRole(BufferRole::kOutput);
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const int64_t elements = Elements(*buffers[i]);
    const OutputCheck check = CheckOutput(
        outputs_[i].data(), reference_.outputs[i].data(), elements,
        buffers[i]->dtype, std::max<int64_t>(1, request_.reduction_length()));
    max_error_ = std::max(max_error_, check.max_error);
    if (!check.ok()) {
      return absl::StrCat(outputs_[i].name(), " ", check.Describe(elements));
    }
  }
  for (const std::vector<GuardedMemory>* group : {&outputs_, &workspace_}) {
    for (const GuardedMemory& memory : *group) {
      if (std::string damage = memory.Damage(); !damage.empty()) return damage;
    }
  }
  return "";
}

absl::StatusOr<bool> RunSession::VerifyOrFail(uint8_t poison,
                                              std::string_view when) {
  if (calls_ == 0) RETURN_IF_ERROR(TightenForCandidate());
  int error = 0;
  const std::string wrong = VerifyOnce(poison, &error);
  if (error != 0) {
    RETURN_IF_ERROR(FailCall(error));
  } else if (!wrong.empty()) {
    RETURN_IF_ERROR(
        Fail(v1::OUTCOME_WRONG_RESULT, absl::StrCat(std::string(when), wrong)));
  }
  return error == 0 && wrong.empty();
}

absl::Status RunSession::TimeAlone() {
  v1::RunResponse response;
  v1::Timed& timed = *response.mutable_timed();
  timed.set_start_boot_ns(clock_.Steady().ns);
  timer_->WarmUp();
  const BlockTimer::Screening screening =
      timer_->Screen(request_.incumbent_ns());
  timed.set_end_boot_ns(clock_.Steady().ns);
  if (timer_->error() != 0) return FailCall(timer_->error());
  ASSIGN_OR_RETURN(const bool right,
                   VerifyOrFail(kLastPoison, "after timing: "));
  if (!right) return absl::OkStatus();
  for (const TimedBlock& block : screening.blocks) {
    v1::Block& out = *timed.add_blocks();
    out.set_calls(block.calls);
    out.set_elapsed_ns(block.elapsed_ns);
  }
  timed.set_abandoned(screening.abandoned);
  timed.set_timing_ns(timed.end_boot_ns() - timed.start_boot_ns());
  return Send(response);
}

absl::Status RunSession::TimeInterleaved() {
  v1::RunResponse last;
  v1::Timed& timed = *last.mutable_timed();
  for (;;) {
    ASSIGN_OR_RETURN(const v1::TimeBlock order,
                     agent_.ReceiveMessage<v1::TimeBlock>());
    if (order.finish()) break;
    const int64_t start = clock_.Steady().ns;
    if (timed.start_boot_ns() == 0) {
      timed.set_start_boot_ns(start);
      timer_->WarmUp();
    }
    const TimedBlock block = timer_->TimeInterleaved();
    timed.set_end_boot_ns(clock_.Steady().ns);
    timed.set_timing_ns(timed.timing_ns() + timed.end_boot_ns() - start);
    if (timer_->error() != 0) return FailCall(timer_->error());
    v1::RunResponse response;
    response.mutable_block()->set_calls(block.calls);
    response.mutable_block()->set_elapsed_ns(block.elapsed_ns);
    RETURN_IF_ERROR(Send(response));
  }
  ASSIGN_OR_RETURN(const bool right,
                   VerifyOrFail(kLastPoison, "after timing: "));
  return right ? Send(last) : absl::OkStatus();
}

absl::Status RunSession::MakeReference(int file) {
  const int64_t started = clock_.Steady().ns;
  const std::vector<const ModuleBuffer*> inputs =
      module_.BuffersWithRole(BufferRole::kInput);
  for (size_t i = 0; i < inputs.size(); ++i) {
    FillInput(request_.input_seed(), static_cast<int>(i), Elements(*inputs[i]),
              inputs[i]->dtype, reference_.inputs[i].data());
    reference_.inputs[i].Protect();
  }
  for (GuardedMemory& memory : outputs_) memory.Poison(kFirstPoison);
  RETURN_IF_ERROR(TightenForCandidate());
  if (const int error = Call(); error != 0) return FailCall(error);

  const std::vector<const ModuleBuffer*> buffers =
      module_.BuffersWithRole(BufferRole::kOutput);
  if (request_.samples_size() != static_cast<int>(buffers.size())) {
    return absl::InvalidArgumentError("samples for another number of outputs");
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    const v1::SampledOutput& samples = request_.samples(static_cast<int>(i));
    const int64_t elements = Elements(*buffers[i]);
    const OutputCheck check =
        CheckSamples(outputs_[i].data(), elements, buffers[i]->dtype,
                     std::max<int64_t>(1, request_.reduction_length()),
                     samples.offsets(), samples.values());
    max_error_ = std::max(max_error_, check.max_error);
    if (!check.ok()) {
      return Fail(
          v1::OUTCOME_WRONG_RESULT,
          absl::StrCat("the reference disagrees with the interpreter: ",
                       outputs_[i].name(), " ", check.Describe(elements)));
    }
    std::copy_n(outputs_[i].data(), outputs_[i].bytes(),
                reference_.outputs[i].data());
  }
  RETURN_IF_ERROR(FinishReferenceFile(module_, file));
  v1::RunResponse response;
  response.mutable_verified()->set_max_error(max_error_);
  response.mutable_verified()->set_verify_ns(clock_.Steady().ns - started);
  return Send(response);
}

absl::Status RunSession::Fail(v1::Outcome outcome, const std::string& detail) {
  v1::RunResponse response;
  response.mutable_failure()->set_outcome(outcome);
  response.mutable_failure()->set_detail(detail);
  return Send(response);
}

absl::Status RunSession::FailCall(int error) {
  return Fail(v1::OUTCOME_CRASHED,
              absl::StrCat("call ", calls_, " returned ", error, " (",
                           CallError(error), ")"));
}

}  // namespace regatta

#include "device_agent/run/run_session.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/memory_file.h"
#include "base/status_macros.h"
#include "device_agent/run/crash_report.h"
#include "device_agent/run/runtime_list.h"
#include "device_agent/verify/input_data.h"
#include "device_agent/verify/output_check.h"

namespace regatta {
namespace {

// Not-a-number in every float type, and another value that no result is; two,
// so that no integer result can equal both.
constexpr uint8_t kFirstPoison = 0xFF;
constexpr uint8_t kLastPoison = 0x7F;
int64_t Elements(const ModuleBuffer& buffer) {
  return buffer.bytes / DTypeBytes(buffer.dtype);
}

}  // namespace

RunSession::~RunSession() { ForgetBuffers(); }

absl::Status RunSession::Run() {
  std::vector<UniqueFd> descriptors;
  absl::StatusOr<v1::RunRequest> request =
      agent_.ReceiveMessage<v1::RunRequest>(&descriptors);
  if (absl::IsOutOfRange(request.status())) return absl::OkStatus();
  RETURN_IF_ERROR(request.status());
  request_ = *std::move(request);
  RETURN_IF_ERROR(Carry(std::move(descriptors)));
  reusable_ = request_.keep_worker() && !failure_.has_value();
  return absl::OkStatus();
}

absl::Status RunSession::Carry(std::vector<UniqueFd> descriptors) {
  const int64_t started = clock_.Steady().ns;
  if (request_.list_kinds_size() > 0) {
    v1::RunResponse response;
    *response.mutable_devices() = ListDevices(
        {request_.list_kinds().begin(), request_.list_kinds().end()});
    return Send(response);
  }
  if (!request_.probe_kind().empty()) {
    v1::RunResponse response;
    ASSIGN_OR_RETURN(*response.mutable_probe(),
                     ProbeDevice(request_.probe_kind(), request_.device()));
    return Send(response);
  }
  if (!request_.prepare_kind().empty()) {
    RETURN_IF_ERROR(PrepareDevice(request_.prepare_kind(), request_.device()));
    v1::RunResponse response;
    response.mutable_prepared();
    return Send(response);
  }
  while (request_.keep_worker() && descriptors.size() > 2) {
    locks_.push_back(std::move(descriptors.back()));
    descriptors.pop_back();
  }
  if (descriptors.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a RunRequest with ", descriptors.size(), " descriptors beside it"));
  }
  InstallCrashReports();
  const absl::Status prepared = Prepare(std::move(descriptors));
  if (absl::IsResourceExhausted(prepared)) {
    Good(Failed(v1::OUTCOME_OUT_OF_MEMORY, std::string(prepared.message())));
    return AnswerFailure();
  }
  RETURN_IF_ERROR(prepared);
  if (request_.make_reference()) return MakeReference();
  ASSIGN_OR_RETURN(const bool ready, PrepareRuntime());
  if (!ready) return absl::OkStatus();

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
  reference_file_ = std::move(descriptors[1]);
  if (request_.make_reference()) {
    ASSIGN_OR_RETURN(reference_,
                     CreateReferenceFile(module_, reference_file_.get()));
  } else {
    ASSIGN_OR_RETURN(reference_,
                     OpenReferenceFile(module_, reference_file_.get()));
  }
  for (const GuardedMemory& memory : reference_.outputs) {
    DescribeCrashesNear(&memory);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> RunSession::PrepareRuntime() {
  RuntimeOptions options;
  options.clock = &call_clock_;
  options.host_clock = &clock_;
  options.device = request_.device();
  if (request_.cache() == v1::CACHE_STATE_COLD) {
    options.evict_bytes = request_.evict_bytes();
  }
  RuntimeOrFailure created = CreateRuntime(module_, options);
  runtime_ = std::move(created.runtime);
  if (!Good(std::move(created.failure)) ||
      !Good(runtime_->SetInputs(reference_.inputs))) {
    RETURN_IF_ERROR(AnswerFailure());
    return false;
  }
  timer_ = std::make_unique<BlockTimer>(
      clock_,
      [this](int64_t calls) -> std::optional<int64_t> {
        int64_t elapsed_ns = 0;
        if (!Good(runtime_->TimeCalls(calls, &elapsed_ns))) return std::nullopt;
        return elapsed_ns;
      },
      options.evict_bytes == 0 ? BlockTimer::Evict()
                               : [this] { return Good(runtime_->Evict()); });
  return true;
}

bool RunSession::Good(MaybeFailure failure) {
  if (failure.has_value() && !failure_.has_value()) {
    failure_ = std::move(failure);
  }
  return !failure_.has_value();
}

bool RunSession::VerifyOnce(uint8_t poison, std::string_view when) {
  std::vector<const void*> outputs;
  if (!Good(runtime_->Poison(poison)) || !Good(runtime_->Call()) ||
      !Good(runtime_->ReadOutputs(&outputs))) {
    return false;
  }
  const auto wrong = [&](std::string what) {
    return Good(Failed(v1::OUTCOME_WRONG_RESULT,
                       absl::StrCat(std::string(when), std::move(what))));
  };
  const std::vector<const ModuleBuffer*> buffers =
      module_.BuffersWithRole(BufferRole::kOutput);
  for (size_t i = 0; i < buffers.size(); ++i) {
    const int64_t elements = Elements(*buffers[i]);
    const OutputCheck check = CheckOutput(
        outputs[i], reference_.outputs[i].data(), elements, buffers[i]->dtype,
        std::max<int64_t>(1, request_.reduction_length()));
    max_error_ = std::max(max_error_, check.max_error);
    if (!check.ok()) {
      return wrong(absl::StrCat("output ", buffers[i]->name, " ",
                                check.Describe(elements)));
    }
  }
  std::string damage;
  if (!Good(runtime_->FindDamage(&damage))) return false;
  return damage.empty() || wrong(std::move(damage));
}

absl::StatusOr<bool> RunSession::VerifyOrFail(uint8_t poison,
                                              std::string_view when) {
  if (!tightened_) RETURN_IF_ERROR(runtime_->Tighten());
  tightened_ = true;
  if (VerifyOnce(poison, when)) return true;
  RETURN_IF_ERROR(AnswerFailure());
  return false;
}

absl::Status RunSession::TimeAlone() {
  v1::RunResponse response;
  v1::Timed& timed = *response.mutable_timed();
  timed.set_start_boot_ns(clock_.Steady().ns);
  timer_->WarmUp();
  const BlockTimer::Screening screening =
      timer_->Screen(request_.incumbent_ns());
  timed.set_end_boot_ns(clock_.Steady().ns);
  if (timer_->failed()) return AnswerFailure();
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
    if (timer_->failed()) return AnswerFailure();
    v1::RunResponse response;
    response.mutable_block()->set_calls(block.calls);
    response.mutable_block()->set_elapsed_ns(block.elapsed_ns);
    RETURN_IF_ERROR(Send(response));
  }
  ASSIGN_OR_RETURN(const bool right,
                   VerifyOrFail(kLastPoison, "after timing: "));
  return right ? Send(last) : absl::OkStatus();
}

absl::Status RunSession::MakeReference() {
  const int64_t started = clock_.Steady().ns;
  const std::vector<const ModuleBuffer*> inputs =
      module_.BuffersWithRole(BufferRole::kInput);
  for (size_t i = 0; i < inputs.size(); ++i) {
    FillInput(request_.input_seed(), static_cast<int>(i), Elements(*inputs[i]),
              inputs[i]->dtype, reference_.inputs[i].data());
    reference_.inputs[i].Protect();
  }
  ASSIGN_OR_RETURN(const bool ready, PrepareRuntime());
  if (!ready) return absl::OkStatus();
  RETURN_IF_ERROR(runtime_->Tighten());
  std::vector<const void*> outputs;
  if (!Good(runtime_->Poison(kFirstPoison)) || !Good(runtime_->Call()) ||
      !Good(runtime_->ReadOutputs(&outputs))) {
    return AnswerFailure();
  }
  const std::vector<const ModuleBuffer*> buffers =
      module_.BuffersWithRole(BufferRole::kOutput);
  if (request_.samples_size() != static_cast<int>(buffers.size())) {
    return absl::InvalidArgumentError("samples for another number of outputs");
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    const v1::SampledOutput& samples = request_.samples(static_cast<int>(i));
    const int64_t elements = Elements(*buffers[i]);
    const OutputCheck check =
        CheckSamples(outputs[i], elements, buffers[i]->dtype,
                     std::max<int64_t>(1, request_.reduction_length()),
                     samples.offsets(), samples.values());
    max_error_ = std::max(max_error_, check.max_error);
    if (!check.ok()) {
      Good(Failed(
          v1::OUTCOME_WRONG_RESULT,
          absl::StrCat("the reference disagrees with the interpreter: output ",
                       buffers[i]->name, " ", check.Describe(elements))));
      return AnswerFailure();
    }
    std::memcpy(reference_.outputs[i].data(), outputs[i],
                static_cast<size_t>(buffers[i]->bytes));
  }
  RETURN_IF_ERROR(FinishReferenceFile(module_, reference_file_.get()));
  v1::RunResponse response;
  response.mutable_verified()->set_max_error(max_error_);
  response.mutable_verified()->set_verify_ns(clock_.Steady().ns - started);
  return Send(response);
}

absl::Status RunSession::AnswerFailure() {
  v1::RunResponse response;
  *response.mutable_failure() = *failure_;
  return Send(response);
}

}  // namespace regatta

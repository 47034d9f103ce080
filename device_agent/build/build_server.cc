#include "device_agent/build/build_server.h"

#include <utility>

#include "base/memory_file.h"
#include "base/status_macros.h"
#include "proto/utf8_texts.h"

namespace regatta {
namespace {

// A response and the file that goes with it, if any.
struct Answer {
  v1::BuildResponse response;
  UniqueFd file;
};

v1::Outcome OutcomeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kFailedPrecondition:
      return v1::OUTCOME_REFUSED;
    case absl::StatusCode::kResourceExhausted:
      return v1::OUTCOME_DEVICE_FAULT;
    default:
      return v1::OUTCOME_COMPILE_ERROR;
  }
}

Answer Failure(const absl::Status& status) {
  Answer answer;
  v1::BuildFailure& failure = *answer.response.mutable_failure();
  failure.set_outcome(OutcomeOf(status));
  failure.set_detail(std::string(status.message()));
  return answer;
}

// To travel beside the answer. ResourceExhausted whatever the board lacks.
absl::StatusOr<UniqueFd> Parcel(const std::string& name,
                                const std::string& bytes) {
  absl::StatusOr<UniqueFd> file = SealedMemoryFile(name, bytes);
  if (file.ok()) return file;
  return absl::ResourceExhaustedError(file.status().message());
}

// What a run worker holds at once: the kernel's outputs and the right ones.
int64_t RunMemoryBytes(const Module& module) {
  int64_t bytes = module.workspace_bytes;
  for (const ModuleBuffer* input : module.BuffersWithRole(BufferRole::kInput)) {
    bytes += input->bytes;
  }
  for (const ModuleBuffer* output :
       module.BuffersWithRole(BufferRole::kOutput)) {
    bytes += 2 * output->bytes;
  }
  return bytes;
}

absl::StatusOr<Answer> BuildModule(const v1::ModuleRequest& request,
                                   ModuleSource& source, const Clock& clock) {
  const SteadyTime started = clock.Steady();
  ASSIGN_OR_RETURN(const SourcedModule code, source.Build(request));
  const std::string bytes = SerializeModule(code.module);
  Answer answer;
  ASSIGN_OR_RETURN(answer.file, Parcel("module", bytes));
  v1::BuiltModule& built = *answer.response.mutable_module();
  built.set_module_bytes(static_cast<int64_t>(bytes.size()));
  built.set_binary_hash(code.module.BinaryHash());
  built.set_flops(code.flops);
  built.set_reduction_length(code.reduction_length);
  built.set_all_f32(code.all_f32);
  built.set_run_memory_bytes(RunMemoryBytes(code.module));
  built.set_build_ns(clock.Steady().ns - started.ns);
  return answer;
}

absl::StatusOr<Answer> BuildReference(const v1::ReferenceRequest& request,
                                      ModuleSource& source) {
  ASSIGN_OR_RETURN(SourcedReference reference, source.BuildReference(request));
  const std::string bytes = SerializeModule(reference.code.module);
  Answer answer;
  ASSIGN_OR_RETURN(answer.file, Parcel("reference", bytes));
  v1::BuiltReference& built = *answer.response.mutable_reference();
  built.set_module_bytes(static_cast<int64_t>(bytes.size()));
  built.set_reduction_length(reference.code.reduction_length);
  built.set_flops(reference.code.flops);
  for (v1::SampledOutput& output : reference.outputs) {
    *built.add_outputs() = std::move(output);
  }
  return answer;
}

absl::StatusOr<Answer> Serve(const v1::BuildRequest& request,
                             ModuleSource& source, const Clock& clock) {
  switch (request.request_case()) {
    case v1::BuildRequest::kDescribe: {
      Answer answer;
      ASSIGN_OR_RETURN(*answer.response.mutable_description(),
                       source.Describe(request.describe()));
      return answer;
    }
    case v1::BuildRequest::kModule:
      return BuildModule(request.module(), source, clock);
    case v1::BuildRequest::kReference:
      return BuildReference(request.reference(), source);
    case v1::BuildRequest::kReach: {
      Answer answer;
      ASSIGN_OR_RETURN(*answer.response.mutable_reach(), source.Reach());
      return answer;
    }
    case v1::BuildRequest::REQUEST_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("a build request that asks for nothing");
}

}  // namespace

absl::Status ServeBuilds(FrameChannel& agent, ModuleSource& source,
                         const Clock& clock) {
  for (;;) {
    absl::StatusOr<v1::BuildRequest> request =
        agent.ReceiveMessage<v1::BuildRequest>();
    if (request.status().code() == absl::StatusCode::kOutOfRange) {
      return absl::OkStatus();
    }
    if (!request.ok()) return request.status();
    absl::StatusOr<Answer> served = Serve(*request, source, clock);
    Answer answer = served.ok() ? *std::move(served) : Failure(served.status());
    answer.response.set_request_id(request->request_id());
    MakeTextsUtf8(answer.response);
    const int file = answer.file.get();
    RETURN_IF_ERROR(agent.Send(
        answer.response, answer.file.valid() ? absl::MakeConstSpan(&file, 1)
                                             : absl::Span<const int>()));
  }
}

}  // namespace regatta

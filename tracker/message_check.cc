#include "tracker/message_check.h"

#include <cmath>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tracker/canary_book.h"

namespace regatta {
namespace {

constexpr int kMaxIdBytes = 512;
constexpr int kMaxDevices = 256;
constexpr int kMaxCredit = 64;
constexpr int kMaxHeld = 4096;
constexpr int kMaxResults = 1024;
constexpr int kMaxTrials = 64;
constexpr double kMaxWeight = 1e6;
// As fleet_service.proto says.
constexpr size_t kPublicKeyBytes = 32;
constexpr int kMaxTrusted = 64;
constexpr int kMaxSlots = 256;
constexpr int kMaxKinds = 32;
constexpr size_t kMaxOrderBytes = (256 + 4) << 10;
constexpr size_t kMaxChunkBytes = 128 << 10;

template <typename... Parts>
absl::Status Bad(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

absl::Status CheckId(const std::string& id, const char* name) {
  if (id.empty()) return Bad(name, " is empty");
  if (id.size() > kMaxIdBytes) {
    return Bad(name, " has ", id.size(), " bytes, at most ", kMaxIdBytes,
               " are allowed");
  }
  return absl::OkStatus();
}

absl::Status CheckCount(int64_t count, int64_t max, const char* name) {
  if (count <= max) return absl::OkStatus();
  return Bad(name, " has ", count, " entries, at most ", max, " are allowed");
}

absl::Status CheckDevices(
    const google::protobuf::RepeatedPtrField<v1::DeviceInfo>& devices) {
  RETURN_IF_ERROR(CheckCount(devices.size(), kMaxDevices, "devices"));
  std::set<std::string> seen;
  for (const v1::DeviceInfo& device : devices) {
    RETURN_IF_ERROR(CheckId(device.device_id(), "device_id"));
    RETURN_IF_ERROR(CheckId(device.device_class(), "device_class"));
    if (!seen.insert(device.device_id()).second) {
      return Bad("device_id ", device.device_id(), " appears twice");
    }
    if (device.credit() < 0 || device.credit() > kMaxCredit) {
      return Bad("credit of device ", device.device_id(), " is ",
                 device.credit(), ", must be 0 to ", kMaxCredit);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOffer(const v1::BuilderOffer& offer) {
  if (offer.public_key().size() != kPublicKeyBytes) {
    return Bad("builder.public_key has ", offer.public_key().size(),
               " bytes, must have ", kPublicKeyBytes);
  }
  if (offer.slots() < 1 || offer.slots() > kMaxSlots) {
    return Bad("builder.slots is ", offer.slots(), ", must be 1 to ",
               kMaxSlots);
  }
  return CheckCount(offer.reach().kinds_size(), kMaxKinds,
                    "builder.reach.kinds");
}

absl::Status CheckHello(const v1::Hello& hello) {
  if (!SpeaksProtocol(hello.protocol_version(), v1::PROTOCOL_VERSION_CURRENT)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the agent speaks protocol version ", hello.protocol_version(),
        ", this tracker speaks ", v1::PROTOCOL_VERSION_CURRENT,
        "; install the same release on both"));
  }
  RETURN_IF_ERROR(CheckId(hello.agent_id(), "agent_id"));
  RETURN_IF_ERROR(CheckId(hello.instance_id(), "instance_id"));
  RETURN_IF_ERROR(CheckDevices(hello.devices()));
  RETURN_IF_ERROR(CheckCount(hello.held_size(), kMaxHeld, "held"));
  if (hello.has_builder()) RETURN_IF_ERROR(CheckOffer(hello.builder()));
  RETURN_IF_ERROR(CheckCount(hello.trusted_builders_size(), kMaxTrusted,
                             "trusted_builders"));
  if (hello.spooled_results() < 0) return Bad("spooled_results is negative");
  for (const v1::HeldAssignment& held : hello.held()) {
    RETURN_IF_ERROR(CheckId(held.assignment_id(), "held.assignment_id"));
    if (held.attempt() < 1) {
      return Bad("held.attempt is ", held.attempt(), ", must be at least 1");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckResults(const v1::ResultBatch& batch) {
  RETURN_IF_ERROR(CheckCount(batch.results_size(), kMaxResults, "results"));
  for (const v1::SpooledResult& spooled : batch.results()) {
    RETURN_IF_ERROR(CheckId(spooled.assignment_id(), "assignment_id"));
    const v1::TrialResult& result = spooled.result();
    RETURN_IF_ERROR(CheckId(result.spec().trial_id(), "trial_id"));
    if (!v1::Outcome_IsValid(result.outcome()) ||
        result.outcome() == v1::OUTCOME_UNSPECIFIED) {
      return Bad("outcome of trial ", result.spec().trial_id(), " is ",
                 static_cast<int>(result.outcome()), ", which is none");
    }
    if (result.attempt() < 1) {
      return Bad("attempt of trial ", result.spec().trial_id(), " is ",
                 result.attempt(), ", must be at least 1");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckWork(const v1::Work& work) {
  RETURN_IF_ERROR(CheckId(work.work_id(), "work_id"));
  RETURN_IF_ERROR(CheckId(work.device_class(), "device_class"));
  if (work.user().size() > kMaxIdBytes) {
    return Bad("user of work ", work.work_id(), " has ", work.user().size(),
               " bytes, at most ", kMaxIdBytes, " are allowed");
  }
  if (work.deadline_unix_ms() < 0) {
    return Bad("deadline_unix_ms of work ", work.work_id(), " is negative");
  }
  if (work.trials_size() < 1 || work.trials_size() > kMaxTrials) {
    return Bad("work ", work.work_id(), " has ", work.trials_size(),
               " trials, must have 1 to ", kMaxTrials);
  }
  for (const double weight : {work.job_weight(), work.task_weight()}) {
    if (!std::isfinite(weight) || weight < 0 || weight > kMaxWeight) {
      return Bad("work ", work.work_id(), " has weight ", weight,
                 ", must be from 0 to ", kMaxWeight);
    }
  }
  std::set<std::string> seen;
  for (const v1::TrialSpec& trial : work.trials()) {
    RETURN_IF_ERROR(CheckId(trial.trial_id(), "trial_id"));
    if (!seen.insert(trial.trial_id()).second) {
      return Bad("work ", work.work_id(), " has trial ", trial.trial_id(),
                 " twice");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOrder(const v1::BuildOrder& order) {
  RETURN_IF_ERROR(CheckId(order.order_id(), "order_id"));
  if (order.ByteSizeLong() > kMaxOrderBytes) {
    return Bad("build order ", order.order_id(), " has ", order.ByteSizeLong(),
               " bytes, at most ", kMaxOrderBytes, " are allowed");
  }
  if (order.limit_ms() < 0) return Bad("limit_ms is negative");
  return absl::OkStatus();
}

absl::Status CheckChunk(const v1::BlobChunk& chunk) {
  RETURN_IF_ERROR(CheckId(chunk.order_id(), "order_id"));
  if (chunk.data().size() <= kMaxChunkBytes) return absl::OkStatus();
  return Bad("a chunk has ", chunk.data().size(), " bytes, at most ",
             kMaxChunkBytes, " are allowed");
}

}  // namespace

bool SpeaksProtocol(int version, int current) {
  return version >= 1 && (version == current || version == current - 1);
}

absl::Status CheckAgentMessage(const v1::AgentMessage& message,
                               int64_t max_bytes) {
  const int64_t bytes = static_cast<int64_t>(message.ByteSizeLong());
  if (bytes > max_bytes) {
    return Bad("the message has ", bytes, " bytes, at most ", max_bytes,
               " are allowed");
  }
  switch (message.message_case()) {
    case v1::AgentMessage::kHello:
      return CheckHello(message.hello());
    case v1::AgentMessage::kHeartbeat:
      if (message.heartbeat().quiet_ms() < 0)
        return Bad("quiet_ms is negative");
      return CheckCount(message.heartbeat().held_assignment_ids_size(),
                        kMaxHeld, "held_assignment_ids");
    case v1::AgentMessage::kAssignmentReply:
      return CheckId(message.assignment_reply().assignment_id(),
                     "assignment_id");
    case v1::AgentMessage::kResultBatch:
      return CheckResults(message.result_batch());
    case v1::AgentMessage::kRelease:
      return CheckId(message.release().assignment_id(), "assignment_id");
    case v1::AgentMessage::kDeviceUpdate:
      return CheckDevices(message.device_update().devices());
    case v1::AgentMessage::kBuildOrder:
      return CheckOrder(message.build_order());
    case v1::AgentMessage::kBuildAnswer:
      return CheckId(message.build_answer().order_id(), "order_id");
    case v1::AgentMessage::kBlobAsk:
      return CheckId(message.blob_ask().order_id(), "order_id");
    case v1::AgentMessage::kBlobChunk:
      return CheckChunk(message.blob_chunk());
    case v1::AgentMessage::kBuildEnd:
      return CheckId(message.build_end().order_id(), "order_id");
    case v1::AgentMessage::kLeaving:
      if (message.leaving().returns_within_ms() < 0) {
        return Bad("returns_within_ms is negative");
      }
      return absl::OkStatus();
    case v1::AgentMessage::MESSAGE_NOT_SET:
      break;
  }
  return Bad(
      "the message is empty or of a kind that this tracker does not "
      "know");
}

absl::Status CheckDispatchRequest(const v1::DispatchRequest& request) {
  switch (request.request_case()) {
    case v1::DispatchRequest::kAttach: {
      const std::string& id = request.attach().server_id();
      RETURN_IF_ERROR(CheckId(id, "server_id"));
      // It is the first part of every assignment's id.
      if (id.find('/') != std::string::npos) {
        return Bad("server_id ", id, " contains a slash");
      }
      if (id.front() == '~') {
        return Bad("server_id ", id, " begins with ~, which is the tracker's");
      }
      return absl::OkStatus();
    }
    case v1::DispatchRequest::kCanaries:
      return CanaryBook::Check(request.canaries());
    case v1::DispatchRequest::kSubmit:
      for (const v1::Work& work : request.submit().work()) {
        RETURN_IF_ERROR(CheckWork(work));
      }
      return absl::OkStatus();
    case v1::DispatchRequest::kCancel:
    case v1::DispatchRequest::kCommitAck:
      return absl::OkStatus();
    case v1::DispatchRequest::kAskFleet:
      return absl::OkStatus();
    case v1::DispatchRequest::REQUEST_NOT_SET:
      break;
  }
  return Bad(
      "the request is empty or of a kind that this tracker does not "
      "know");
}

}  // namespace regatta

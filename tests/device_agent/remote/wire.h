// A tracker between a board and builders that does as it is told: passes
// messages on at once, changed or not at all where a test says so.
#ifndef REGATTA_TESTS_DEVICE_AGENT_REMOTE_WIRE_H_
#define REGATTA_TESTS_DEVICE_AGENT_REMOTE_WIRE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/memory_file.h"
#include "device_agent/remote/order_builder.h"
#include "device_agent/remote/order_desk.h"

namespace regatta {

// Answers every request alike.
class FakeBuildWorker : public BuildWorker {
 public:
  using Answer =
      std::function<absl::StatusOr<Reply>(const v1::BuildRequest& request)>;
  explicit FakeBuildWorker(Answer answer) : answer_(std::move(answer)) {}

  absl::StatusOr<Reply> Call(v1::BuildRequest request,
                             const std::function<bool()>&) override {
    return answer_(request);
  }
  bool on_board() const override { return true; }
  void Abort() override {}

  // A module of these bytes.
  static absl::StatusOr<Reply> Module(const std::string& bytes) {
    Reply reply;
    reply.response.mutable_module()->set_module_bytes(
        static_cast<int64_t>(bytes.size()));
    absl::StatusOr<UniqueFd> file = SealedMemoryFile("module", bytes);
    if (!file.ok()) return file.status();
    reply.file = *std::move(file);
    return reply;
  }

 private:
  const Answer answer_;
};

// One board's desk and one builder, and what may happen to messages between.
class Wire {
 public:
  // Each may change the message; false: it is lost.
  std::function<bool(v1::BuildOrder&)> on_order;
  std::function<bool(v1::BuildAnswer&)> on_answer;
  std::function<bool(v1::BlobChunk&)> on_chunk;

  OrderDesk::Send FromBoard() {
    return [this](v1::AgentMessage said) {
      v1::TrackerMessage message;
      if (said.has_build_order()) {
        v1::BuildOrder& order = *message.mutable_build_order();
        order = said.build_order();
        if (on_order && !on_order(order)) return;
      } else if (said.has_blob_ask()) {
        *message.mutable_blob_ask() = said.blob_ask();
      } else {
        *message.mutable_build_end() = said.build_end();
      }
      builder->OnBuildMessage(message);
    };
  }
  OrderBuilder::Send FromBuilder() {
    return [this](v1::AgentMessage said) {
      v1::TrackerMessage message;
      if (said.has_build_answer()) {
        v1::BuildAnswer& answer = *message.mutable_build_answer();
        answer = said.build_answer();
        if (on_answer && !on_answer(answer)) return;
      } else {
        v1::BlobChunk& chunk = *message.mutable_blob_chunk();
        chunk = said.blob_chunk();
        if (on_chunk && !on_chunk(chunk)) return;
      }
      desk->OnBuildMessage(message);
    };
  }
  void Up() {
    builder->OnSession({true, true, 1});
    desk->OnSession({true, true, 1});
  }
  void Down() {
    desk->OnSession({});
    builder->OnSession({});
  }

  std::unique_ptr<OrderDesk> desk;
  std::unique_ptr<OrderBuilder> builder;  // ends first
};

}  // namespace regatta

#endif  // REGATTA_TESTS_DEVICE_AGENT_REMOTE_WIRE_H_

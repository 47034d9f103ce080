// A board's orders and a builder's answers, without a network: what a board
// lets through and what it does not.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/digest.h"
#include "device_agent/remote/build_seal.h"
#include "device_agent/remote/builder_key.h"
#include "device_agent/remote/remote_build_worker.h"
#include "tests/device_agent/remote/wire.h"

namespace regatta {
namespace {

// Three chunks, the last one short.
std::string ModuleBytes() {
  std::string bytes;
  for (int i = 0; bytes.size() < 300'000; ++i) absl::StrAppend(&bytes, i, ",");
  return bytes;
}

v1::BuildRequest ModuleRequest(const std::string& schedule) {
  v1::BuildRequest request;
  request.mutable_module()->set_workload("matmul(m=4,n=4,k=4)");
  request.mutable_module()->set_target(
      "cpu,triple=aarch64-linux-gnu,mcpu=cortex-a76");
  request.mutable_module()->set_compiler_version("c1");
  request.mutable_module()->mutable_schedule()->set_space_version(7);
  request.mutable_module()->mutable_schedule()->set_text(schedule);
  return request;
}

class Orders : public ::testing::Test {
 protected:
  Orders() {
    locks_folder_ = ::testing::TempDir() + "/orders-XXXXXX";
    EXPECT_NE(mkdtemp(locks_folder_.data()), nullptr);
    locks_ = std::make_unique<CoreLocks>(locks_folder_);
    desk_options_.trusted = {key_.public_key()};
    desk_options_.limit = absl::Seconds(20);
    desk_options_.retry = absl::Milliseconds(1);
  }
  ~Orders() override {
    wire_.builder.reset();
    std::filesystem::remove_all(locks_folder_);
  }

  void StartUp() {
    std::vector<OrderBuilder::Slot> slots;
    slots.push_back({0, std::make_unique<FakeBuildWorker>(
                            [this](const v1::BuildRequest& request) {
                              ++builds_;
                              return answer_(request);
                            })});
    wire_.desk = std::make_unique<OrderDesk>(desk_options_, &RealClock(),
                                             wire_.FromBoard());
    wire_.builder = std::make_unique<OrderBuilder>(
        key_, "b", std::move(slots), locks_.get(), wire_.FromBuilder());
    wire_.Up();
    worker_ = std::make_unique<RemoteBuildWorker>(wire_.desk.get());
  }
  absl::StatusOr<BuildWorker::Reply> Build(const std::string& schedule) {
    return worker_->Call(ModuleRequest(schedule), nullptr);
  }
  void ExpectRefused(absl::StatusCode code, const std::string& says) {
    const auto reply = Build("s");
    ASSERT_FALSE(reply.ok());
    EXPECT_EQ(reply.status().code(), code) << reply.status();
    EXPECT_NE(reply.status().message().find(says), absl::string_view::npos)
        << reply.status();
    EXPECT_EQ(wire_.desk->refused(), 1);
  }

  const SigningKey key_ = SigningKey::Generate();
  std::string locks_folder_;
  std::unique_ptr<CoreLocks> locks_;
  OrderDesk::Options desk_options_;
  std::atomic<int> builds_ = 0;
  FakeBuildWorker::Answer answer_ = [](const v1::BuildRequest&) {
    return FakeBuildWorker::Module(ModuleBytes());
  };
  Wire wire_;
  std::unique_ptr<RemoteBuildWorker> worker_;
};

TEST_F(Orders, AModuleArrivesWholeAndSaysWhoBuiltIt) {
  std::vector<int64_t> offsets;
  wire_.on_chunk = [&](v1::BlobChunk& chunk) {
    offsets.push_back(chunk.offset());
    EXPECT_LE(chunk.data().size(), 128u << 10);
    return true;
  };
  v1::BuildOrder order;
  wire_.on_order = [&](v1::BuildOrder& sent) {
    order = sent;
    return true;
  };
  StartUp();
  const auto reply = Build("s");
  ASSERT_TRUE(reply.ok()) << reply.status();
  const auto mapped = MappedFile::Map(reply->file.get());
  ASSERT_TRUE(mapped.ok());
  EXPECT_EQ(mapped->bytes(), ModuleBytes());
  EXPECT_EQ(reply->builder, "b " + KeyName(key_.public_key()));
  EXPECT_EQ(offsets, (std::vector<int64_t>{0, 131072, 262144}));
  EXPECT_EQ(order.kind(), "cpu");
  EXPECT_EQ(order.architecture(), "aarch64");
  EXPECT_EQ(order.compiler_version(), "c1");
  EXPECT_EQ(order.space_version(), 7);
  EXPECT_GT(order.limit_ms(), 0);
  EXPECT_LE(order.limit_ms(), 20'000);
}

TEST_F(Orders, WhatWasOrderedBeforeIsNotBuiltAgain) {
  StartUp();
  EXPECT_TRUE(Build("s").ok());
  EXPECT_TRUE(Build("s").ok());
  EXPECT_EQ(builds_, 1);
  EXPECT_TRUE(Build("t").ok());
  EXPECT_EQ(builds_, 2);
}

TEST_F(Orders, AChangedModuleIsRefused) {
  wire_.on_chunk = [](v1::BlobChunk& chunk) {
    if (chunk.offset() == 131072) (*chunk.mutable_data())[5] ^= 1;
    return true;
  };
  StartUp();
  ExpectRefused(absl::StatusCode::kDataLoss, "it signed");
}

TEST_F(Orders, ATruncatedModuleIsRefused) {
  wire_.on_chunk = [](v1::BlobChunk& chunk) {
    chunk.mutable_data()->pop_back();
    return true;
  };
  StartUp();
  ExpectRefused(absl::StatusCode::kDataLoss, "instead of 131072");
}

TEST_F(Orders, AChangedAnswerIsRefused) {
  wire_.on_answer = [](v1::BuildAnswer& answer) {
    v1::BuildResponse response;
    response.mutable_failure()->set_outcome(v1::OUTCOME_COMPILE_ERROR);
    answer.set_response(response.SerializeAsString());
    return true;
  };
  StartUp();
  // It would have counted against the candidate.
  ExpectRefused(absl::StatusCode::kPermissionDenied, "is not signed");
}

TEST_F(Orders, EveryFieldThatMattersIsSigned) {
  StartUp();
  v1::BuildAnswer honest;
  wire_.on_answer = [&](v1::BuildAnswer& answer) {
    honest = answer;
    return true;
  };
  ASSERT_TRUE(Build("s").ok());
  v1::BuildRequest request = ModuleRequest("s");
  const std::string asked = request.SerializeAsString();
  const std::vector<std::string> trusted = {key_.public_key()};
  ASSERT_TRUE(CheckSeal(trusted, asked, honest).ok());
  const std::vector<std::function<void(v1::BuildAnswer&)>> changes = {
      [](auto& a) { a.mutable_response()->push_back('x'); },
      [](auto& a) { a.set_builder("c"); },
      [](auto& a) { a.set_digest(Sha256Hex("x")); },
      [](auto& a) { a.set_digest(""); },
      [](auto& a) { a.set_file_bytes(a.file_bytes() - 1); },
      [](auto& a) { a.mutable_signature()->back() ^= 1; },
      [](auto& a) { a.clear_signature(); },
      [](auto& a) { a.mutable_signature()->resize(63); },
      [](auto& a) { a.clear_public_key(); },
  };
  for (const auto& change : changes) {
    v1::BuildAnswer changed = honest;
    change(changed);
    EXPECT_TRUE(absl::IsPermissionDenied(CheckSeal(trusted, asked, changed)))
        << changed.DebugString();
  }
  EXPECT_TRUE(absl::IsPermissionDenied(
      CheckSeal(trusted, ModuleRequest("t").SerializeAsString(), honest)));
}

TEST_F(Orders, AnAnswerToAnotherRequestIsRefused) {
  StartUp();
  v1::BuildAnswer earlier;
  wire_.on_answer = [&](v1::BuildAnswer& answer) {
    if (earlier.signature().empty()) {
      earlier = answer;
    } else {
      const std::string id = answer.order_id();
      answer = earlier;
      answer.set_order_id(id);
    }
    return true;
  };
  ASSERT_TRUE(Build("other schedule").ok());
  ExpectRefused(absl::StatusCode::kPermissionDenied, "another request");
}

TEST_F(Orders, ABuilderThatIsNotNamedIsRefused) {
  desk_options_.trusted = {SigningKey::Generate().public_key()};
  StartUp();
  ExpectRefused(absl::StatusCode::kPermissionDenied,
                "is not one that --trust-builder names");
}

TEST_F(Orders, ANamedKeyWithoutItsHolderIsRefused) {
  const SigningKey other = SigningKey::Generate();
  wire_.on_answer = [&](v1::BuildAnswer& answer) {
    SealAnswer(other, ModuleRequest("s").SerializeAsString(), answer);
    answer.set_public_key(key_.public_key());
    return true;
  };
  StartUp();
  ExpectRefused(absl::StatusCode::kPermissionDenied, "is not signed");
}

TEST_F(Orders, AModuleThatIsTooLargeIsRefusedBeforeItIsFetched) {
  wire_.on_answer = [&](v1::BuildAnswer& answer) {
    answer.set_file_bytes((64 << 20) + 1);
    SealAnswer(key_, ModuleRequest("s").SerializeAsString(), answer);
    return true;
  };
  wire_.on_chunk = [](v1::BlobChunk&) {
    ADD_FAILURE() << "it was asked for";
    return true;
  };
  StartUp();
  ExpectRefused(absl::StatusCode::kInvalidArgument, "at most 67108864");
}

TEST_F(Orders, AnAnswerOfAnotherKindIsNotTaken) {
  answer_ = [](const v1::BuildRequest&) -> absl::StatusOr<BuildWorker::Reply> {
    BuildWorker::Reply reply;
    reply.response.mutable_description()->set_target("cpu");
    return reply;
  };
  StartUp();
  const auto reply = Build("s");
  EXPECT_TRUE(absl::IsInternal(reply.status())) << reply.status();
}

TEST_F(Orders, AFailureOfTheCandidateComesBackAsSuch) {
  answer_ = [](const v1::BuildRequest&) -> absl::StatusOr<BuildWorker::Reply> {
    BuildWorker::Reply reply;
    reply.response.mutable_failure()->set_outcome(v1::OUTCOME_REFUSED);
    reply.response.mutable_failure()->set_detail("registers: 40 of 32");
    return reply;
  };
  StartUp();
  const auto reply = Build("s");
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->response.failure().outcome(), v1::OUTCOME_REFUSED);
  EXPECT_EQ(reply->response.failure().detail(), "registers: 40 of 32");
  EXPECT_FALSE(reply->file.valid());
}

TEST_F(Orders, WhatTheBuilderLacksIsNoAnswer) {
  desk_options_.limit = absl::Milliseconds(300);
  answer_ = [](const v1::BuildRequest&) -> absl::StatusOr<BuildWorker::Reply> {
    BuildWorker::Reply reply;
    reply.response.mutable_failure()->set_outcome(v1::OUTCOME_DEVICE_FAULT);
    reply.response.mutable_failure()->set_detail("no memory file");
    return reply;
  };
  StartUp();
  const auto reply = Build("s");
  EXPECT_TRUE(absl::IsDeadlineExceeded(reply.status()));
  EXPECT_NE(reply.status().message().find("no memory file"),
            absl::string_view::npos)
      << reply.status();
  EXPECT_GT(builds_, 1);  // it was tried again
}

TEST_F(Orders, LostAndRepeatedMessagesDoNoHarm) {
  int answers = 0;
  wire_.on_answer = [&](v1::BuildAnswer& answer) {
    if (++answers == 1) {
      v1::BuildAnswer lost;  // as the tracker says it
      lost.set_order_id(answer.order_id());
      lost.set_unavailable("builder b was lost");
      answer = lost;
    } else {
      v1::TrackerMessage again;
      *again.mutable_build_answer() = answer;
      wire_.desk->OnBuildMessage(again);
    }
    return true;
  };
  wire_.on_chunk = [&](v1::BlobChunk& chunk) {
    v1::TrackerMessage again;
    *again.mutable_blob_chunk() = chunk;
    wire_.desk->OnBuildMessage(again);
    return true;
  };
  StartUp();
  const auto reply = Build("s");
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(MappedFile::Map(reply->file.get())->bytes(), ModuleBytes());
  EXPECT_EQ(answers, 2);
  EXPECT_EQ(wire_.desk->refused(), 0);
}

TEST_F(Orders, ANewSessionOrdersAgain) {
  std::atomic<int> orders = 0;
  wire_.on_order = [&](v1::BuildOrder&) {
    if (++orders > 1) return true;
    // Lost with the session that it was sent in.
    std::thread([this] {
      wire_.Down();
      wire_.Up();
    }).join();
    return false;
  };
  StartUp();
  EXPECT_TRUE(Build("s").ok());
  EXPECT_EQ(orders, 2);
}

TEST_F(Orders, WithoutAnswerTheOrderEndsWithTheReason) {
  desk_options_.limit = absl::Milliseconds(200);
  wire_.on_answer = [](v1::BuildAnswer& answer) {
    const std::string id = answer.order_id();
    answer.Clear();
    answer.set_order_id(id);
    answer.set_unavailable("no builder of cpu is online");
    return true;
  };
  ::testing::internal::CaptureStderr();
  StartUp();
  const auto reply = Build("s");
  // The log has it as soon as it is known, and once.
  const std::string log = ::testing::internal::GetCapturedStderr();
  const std::string noted =
      "still waiting for a builder: no builder of cpu is online";
  EXPECT_NE(log.find(noted), std::string::npos) << log;
  EXPECT_EQ(log.find(noted), log.rfind(noted)) << log;
  EXPECT_TRUE(absl::IsDeadlineExceeded(reply.status()));
  EXPECT_EQ(reply.status().message(),
            "waited 200ms for a builder: no builder of cpu is online");
}

TEST_F(Orders, ACancelledOrderEndsAtOnceAndTheBuilderIsTold) {
  wire_.on_answer = [](v1::BuildAnswer&) { return false; };
  StartUp();
  std::atomic<bool> cancelled = false;
  std::thread later([&] { cancelled = true; });
  const auto reply =
      worker_->Call(ModuleRequest("s"), [&] { return cancelled.load(); });
  later.join();
  EXPECT_TRUE(absl::IsCancelled(reply.status())) << reply.status();
}

TEST_F(Orders, ATrackerThatRelaysNothingIsNamed) {
  StartUp();
  wire_.desk->OnSession({true, false, 0});
  const auto reply = Build("s");
  EXPECT_TRUE(absl::IsFailedPrecondition(reply.status())) << reply.status();
}

TEST_F(Orders, NothingIsBuiltWhileTheCoreIsTimedOn) {
  StartUp();
  std::optional<CoreLocks::Held> timing;
  {
    auto held =
        locks_->Take({0}, CoreLocks::Use::kTiming, [] { return false; });
    ASSERT_TRUE(held.ok()) << held.status();
    timing.emplace(*std::move(held));
  }
  std::atomic<bool> done = false;
  std::thread ordering([&] {
    EXPECT_TRUE(Build("s").ok());
    done = true;
  });
  // Long enough for a build that does not ask.
  absl::SleepFor(absl::Milliseconds(200));
  EXPECT_EQ(builds_, 0);
  EXPECT_FALSE(done);
  timing.reset();
  ordering.join();
  EXPECT_EQ(builds_, 1);
}

TEST_F(Orders, GarbageIsDeclined) {
  StartUp();
  std::string said;
  std::atomic<bool> declined = false;
  wire_.on_answer = [&](v1::BuildAnswer& answer) {
    said = answer.unavailable();
    declined = true;
    return false;
  };
  v1::BuildOrder order;
  order.set_kind("cpu");
  order.set_request("no request");
  const auto delivery =
      wire_.desk->Order(order, [&] { return declined.load(); });
  EXPECT_TRUE(absl::IsCancelled(delivery.status())) << delivery.status();
  EXPECT_EQ(said, "the order asks for nothing");
  EXPECT_EQ(builds_, 0);
}

}  // namespace
}  // namespace regatta

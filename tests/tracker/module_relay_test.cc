// Orders of measure-only boards and what builders answer, through the core.
#include "tracker/module_relay.h"

#include "tests/tracker/builder_hellos.h"
#include "tests/tracker/core_fixture.h"

namespace regatta {
namespace {

const std::string kOtherKey(32, 'o');

class ModuleRelayTest : public CoreTest {
 protected:
  SessionId ConnectBuilder(const std::string& id, int slots = 1,
                           const std::string& key = kBuilderKey,
                           const std::string& compiler = kCompiler) {
    return Connect(AsBuilder(MakeHello(id, {}), compiler, slots, key));
  }
  static v1::Hello BoardHello(const std::string& id) {
    return AsMeasureOnly(MakeHello("a" + id, {MakeDevice("d" + id)}),
                         kCompiler);
  }
  static v1::BuildOrder MakeOrder(const std::string& id) {
    v1::BuildOrder order;
    order.set_order_id(id);
    order.set_kind("cpu");
    order.set_architecture("aarch64");
    order.set_compiler_version(kCompiler);
    order.set_space_version(1);
    order.set_request("request " + id);
    order.set_limit_ms(30'000);
    return order;
  }
  void Order(SessionId board, const v1::BuildOrder& order) {
    v1::AgentMessage message;
    *message.mutable_build_order() = order;
    Say(board, message);
  }
  void End(SessionId board, const std::string& id) {
    v1::AgentMessage message;
    message.mutable_build_end()->set_order_id(id);
    Say(board, message);
  }
  void Answer(SessionId builder, const std::string& id,
              const std::string& unavailable = "") {
    v1::AgentMessage message;
    v1::BuildAnswer& answer = *message.mutable_build_answer();
    answer.set_order_id(id);
    answer.set_unavailable(unavailable);
    if (unavailable.empty()) answer.set_response("response");
    Say(builder, message);
  }
  // Takes what of this kind was sent to the session out of its inbox.
  template <typename Message>
  std::vector<Message> Take(SessionId session,
                            bool (v1::TrackerMessage::*has)() const,
                            const Message& (v1::TrackerMessage::*get)() const) {
    std::vector<Message> found;
    for (const auto& m : agents_[session].messages) {
      if ((m.*has)()) found.push_back((m.*get)());
    }
    std::erase_if(agents_[session].messages,
                  [&](const auto& m) { return (m.*has)(); });
    return found;
  }
  std::vector<v1::BuildOrder> Orders(SessionId builder) {
    return Take(builder, &v1::TrackerMessage::has_build_order,
                &v1::TrackerMessage::build_order);
  }
  std::vector<v1::BuildAnswer> Answers(SessionId board) {
    return Take(board, &v1::TrackerMessage::has_build_answer,
                &v1::TrackerMessage::build_answer);
  }
  std::vector<v1::BuildEnd> Ends(SessionId builder) {
    return Take(builder, &v1::TrackerMessage::has_build_end,
                &v1::TrackerMessage::build_end);
  }
  std::vector<v1::BlobAsk> Asks(SessionId builder) {
    return Take(builder, &v1::TrackerMessage::has_blob_ask,
                &v1::TrackerMessage::blob_ask);
  }
  std::vector<v1::BlobChunk> Chunks(SessionId board) {
    return Take(board, &v1::TrackerMessage::has_blob_chunk,
                &v1::TrackerMessage::blob_chunk);
  }
};

TEST_F(ModuleRelayTest, AnOrderGoesToABuilderAndItsModuleComesBack) {
  const SessionId builder = ConnectBuilder("b");
  const SessionId board = Connect(BoardHello("1"));
  Order(board, MakeOrder("mine"));
  const auto orders = Orders(builder);
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders[0].request(), "request mine");
  EXPECT_NE(orders[0].order_id(), "mine");  // ids of boards may collide
  EXPECT_EQ(orders[0].limit_ms(), 30'000);
  Answer(builder, orders[0].order_id());
  const auto answers = Answers(board);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].order_id(), "mine");
  EXPECT_EQ(answers[0].response(), "response");

  v1::AgentMessage ask;
  ask.mutable_blob_ask()->set_order_id("mine");
  ask.mutable_blob_ask()->set_digest("dd");
  ask.mutable_blob_ask()->set_offset(128 << 10);
  Say(board, ask);
  const auto asks = Asks(builder);
  ASSERT_EQ(asks.size(), 1u);
  EXPECT_EQ(asks[0].order_id(), orders[0].order_id());
  EXPECT_EQ(asks[0].offset(), 128 << 10);
  v1::AgentMessage chunk;
  chunk.mutable_blob_chunk()->set_order_id(asks[0].order_id());
  chunk.mutable_blob_chunk()->set_data("bytes");
  Say(builder, chunk);
  const auto chunks = Chunks(board);
  ASSERT_EQ(chunks.size(), 1u);
  EXPECT_EQ(chunks[0].order_id(), "mine");
  EXPECT_EQ(chunks[0].data(), "bytes");
  // One that nobody asked for is not passed on.
  Say(builder, chunk);
  EXPECT_TRUE(Chunks(board).empty());

  End(board, "mine");
  EXPECT_EQ(Ends(builder).size(), 1u);
  Say(board, ask);
  ASSERT_EQ(Chunks(board).size(), 1u);  // says that it has ended
  EXPECT_TRUE(Asks(builder).empty());
}

TEST_F(ModuleRelayTest, OnlyABuilderThatIsTrustedAndFitsGetsAnOrder) {
  const SessionId stranger = ConnectBuilder("s", 4, kOtherKey);
  const SessionId old = ConnectBuilder("o", 4, kBuilderKey, "c0");
  const SessionId board = Connect(BoardHello("1"));
  Order(board, MakeOrder("1"));
  v1::BuildOrder other = MakeOrder("2");
  other.set_architecture("riscv64");
  Order(board, other);
  EXPECT_TRUE(Orders(stranger).empty());
  EXPECT_TRUE(Orders(old).empty());
  const SessionId builder = ConnectBuilder("b", 4);
  EXPECT_EQ(Orders(builder).size(), 1u);  // not the one for riscv64
  v1::BuildOrder any = MakeOrder("3");
  any.clear_compiler_version();
  any.clear_architecture();
  any.set_space_version(0);
  Order(board, any);
  EXPECT_EQ(Orders(old).size() + Orders(builder).size(), 1u);
}

TEST_F(ModuleRelayTest, ABuilderNeverHasMoreThanItsSlots) {
  const SessionId builder = ConnectBuilder("b", 2);
  const SessionId board = Connect(BoardHello("1"));
  for (const char* id : {"1", "2", "3"}) Order(board, MakeOrder(id));
  auto orders = Orders(builder);
  ASSERT_EQ(orders.size(), 2u);
  EXPECT_EQ(orders[0].request(), "request 1");
  Order(board, MakeOrder("1"));  // sent twice
  EXPECT_TRUE(Orders(builder).empty());
  Answer(builder, orders[0].order_id());
  orders = Orders(builder);
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders[0].request(), "request 3");
}

TEST_F(ModuleRelayTest, AnOrderOfALostBuilderGoesToAnotherAtMostTwice) {
  const SessionId board = Connect(BoardHello("1"));
  Order(board, MakeOrder("1"));
  for (int loss = 0; loss < 3; ++loss) {
    EXPECT_TRUE(Answers(board).empty());
    const SessionId builder = ConnectBuilder(absl::StrCat("b", loss));
    ASSERT_EQ(Orders(builder).size(), 1u);
    Disconnect(builder);
  }
  const auto answers = Answers(board);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].unavailable(), "builder b2 was lost");
}

TEST_F(ModuleRelayTest, ABuilderThatDeclinesIsNotAskedAgain) {
  const SessionId first = ConnectBuilder("b1");
  const SessionId board = Connect(BoardHello("1"));
  Order(board, MakeOrder("1"));
  const SessionId second = ConnectBuilder("b2");
  Answer(first, Orders(first).at(0).order_id(), "no memory");
  Answer(second, Orders(second).at(0).order_id(), "no disk");
  const auto answers = Answers(board);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].unavailable(), "builder b2: no disk");
  EXPECT_TRUE(Orders(first).empty());
}

TEST_F(ModuleRelayTest, ABuilderLostAfterItsAnswerIsReported) {
  const SessionId builder = ConnectBuilder("b");
  const SessionId board = Connect(BoardHello("1"));
  Order(board, MakeOrder("1"));
  Answer(builder, Orders(builder).at(0).order_id());
  EXPECT_EQ(Answers(board).size(), 1u);
  Disconnect(builder);
  const auto answers = Answers(board);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].unavailable(), "builder b was lost");
}

TEST_F(ModuleRelayTest, ABuilderThatIsBusyIsWaitedForUntilTheLimit) {
  const SessionId builder = ConnectBuilder("b");
  const SessionId board = Connect(BoardHello("1"));
  v1::BuildOrder longer = MakeOrder("1");
  longer.set_limit_ms(60'000);
  Order(board, longer);
  Order(board, MakeOrder("2"));
  Wait(absl::Seconds(29));
  EXPECT_TRUE(Answers(board).empty());
  Beat(builder);
  Beat(board);
  Wait(absl::Seconds(2));
  const auto answers = Answers(board);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].order_id(), "2");
  EXPECT_EQ(answers[0].unavailable(),
            "no builder of cpu for aarch64, compiler c1, space version 1 that "
            "the board trusts is free");
}

TEST_F(ModuleRelayTest, WithoutABuilderThatFitsTheBoardIsSoonToldWhoIsHere) {
  const SessionId board = Connect(BoardHello("1"));
  const auto told = [&](const v1::BuildOrder& order) {
    Order(board, order);
    Wait(absl::Milliseconds(1900));
    EXPECT_TRUE(Answers(board).empty());
    Wait(absl::Milliseconds(300));
    const auto answers = Answers(board);
    return answers.size() == 1 ? answers[0].unavailable() : "no answer";
  };
  EXPECT_EQ(told(MakeOrder("1")),
            "no builder with key 6b6b6b6b6b6b6b6b... is online; nor is any "
            "other");
  const SessionId other = ConnectBuilder("other", 1, kOtherKey);
  EXPECT_EQ(told(MakeOrder("2")),
            "no builder with key 6b6b6b6b6b6b6b6b... is online; online are "
            "other 6f6f6f6f6f6f6f6f...");
  ConnectBuilder("b");
  v1::BuildOrder strange = MakeOrder("3");
  strange.set_kind("x");
  EXPECT_EQ(told(strange),
            "no builder that it trusts builds for x for aarch64, compiler c1, "
            "space version 1; online are b (cpu)");
  EXPECT_TRUE(Orders(other).empty());
}

TEST_F(ModuleRelayTest, AnOrderSurvivesARestartOfItsBuilder) {
  const SessionId first = ConnectBuilder("b");
  const SessionId board = Connect(BoardHello("1"));
  Order(board, MakeOrder("1"));
  EXPECT_EQ(Orders(first).size(), 1u);
  Disconnect(first);
  Wait(absl::Milliseconds(1900));
  const SessionId second = ConnectBuilder("b");
  EXPECT_EQ(Orders(second).size(), 1u);
  Wait(absl::Seconds(5));
  EXPECT_TRUE(Answers(board).empty());
  // Gone for good.
  Disconnect(second);
  Wait(absl::Seconds(4));
  const auto answers = Answers(board);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].unavailable(),
            "no builder with key 6b6b6b6b6b6b6b6b... is online; nor is any "
            "other; the last: builder b was lost");
}

TEST_F(ModuleRelayTest, ABoardThatNobodyHasDescribedIsSeenWithTheReason) {
  v1::Hello hello = BoardHello("1");
  hello.set_devices_follow(true);
  hello.clear_devices();
  const SessionId board = Connect(hello);
  Wait(absl::Milliseconds(10));
  const auto only = [&] {
    const v1::ListDevicesResponse list = core_->ListDevices();
    EXPECT_EQ(list.devices_size(), 1);
    return list.devices_size() == 1 ? list.devices(0) : v1::DeviceStatus();
  };
  EXPECT_EQ(only().info().device_id(), "a1");
  EXPECT_EQ(only().state(), "waiting");
  EXPECT_EQ(only().presence(), v1::PRESENCE_ONLINE);
  EXPECT_EQ(only().obstacle(), "waiting for a builder to describe it");
  v1::BuildOrder order = MakeOrder("1");
  order.clear_compiler_version();
  order.clear_space_version();
  Order(board, order);
  EXPECT_EQ(only().obstacle(),
            "waiting for a builder: no builder with key 6b6b6b6b6b6b6b6b... "
            "is online; nor is any other");
  // Described, it is what it was described as.
  v1::AgentMessage update;
  *update.mutable_device_update()->add_devices() = BoardHello("1").devices(0);
  Say(board, update);
  EXPECT_EQ(only().info().device_id(), "d1");
  EXPECT_EQ(only().state(), "waiting");
  EXPECT_EQ(only().obstacle(),
            "waiting for a builder: no builder with key 6b6b6b6b6b6b6b6b... "
            "is online; nor is any other");
  // Its agent starts again: what it said before is no news of it.
  v1::DeviceInfo stale = BoardHello("1").devices(0);
  stale.set_health("draining: the agent was told to stop");
  update.mutable_device_update()->clear_devices();
  *update.mutable_device_update()->add_devices() = stale;
  Say(board, update);
  Disconnect(board);
  hello.set_instance_id("another");
  Connect(hello);
  EXPECT_EQ(only().state(), "waiting");
  EXPECT_EQ(only().info().health(), "probing");
}

TEST_F(ModuleRelayTest, ASilentBuilderEndsAnOrderAtItsLimitAndIsTold) {
  const SessionId builder = ConnectBuilder("b");
  const SessionId board = Connect(BoardHello("1"));
  Order(board, MakeOrder("1"));
  const std::string id = Orders(builder).at(0).order_id();
  Wait(absl::Seconds(29));
  Beat(builder);
  Beat(board);
  Wait(absl::Seconds(2));
  ASSERT_EQ(Answers(board).size(), 1u);
  EXPECT_EQ(Ends(builder).size(), 1u);
  Answer(builder, id);  // late
  EXPECT_TRUE(Answers(board).empty());
}

TEST_F(ModuleRelayTest, OrdersEndWithTheirBoard) {
  const SessionId builder = ConnectBuilder("b", 1);
  const SessionId board = Connect(BoardHello("1"));
  const SessionId other = Connect(BoardHello("2"));
  Order(board, MakeOrder("1"));
  Order(other, MakeOrder("1"));
  const std::string id = Orders(builder).at(0).order_id();
  Disconnect(board);
  EXPECT_EQ(Ends(builder).size(), 1u);
  EXPECT_EQ(Orders(builder).size(), 1u);  // the other's
  Answer(builder, id);
  EXPECT_TRUE(Answers(other).empty());
}

TEST_F(ModuleRelayTest, NobodyAnswersOrOrdersForAnother) {
  const SessionId builder = ConnectBuilder("b");
  const SessionId liar = ConnectBuilder("liar");
  const SessionId board = Connect(BoardHello("1"));
  const SessionId plain = ConnectBoard("9");
  Order(board, MakeOrder("1"));
  const auto mine = Orders(builder);
  const auto theirs = Orders(liar);
  ASSERT_EQ(mine.size() + theirs.size(), 1u);
  const bool first = !mine.empty();
  Answer(first ? liar : builder, (first ? mine : theirs)[0].order_id());
  EXPECT_TRUE(Answers(board).empty());
  Order(plain, MakeOrder("1"));
  ASSERT_EQ(Answers(plain).size(), 1u);
}

TEST_F(ModuleRelayTest, ABoardHasABoundOfOrders) {
  const SessionId board = Connect(BoardHello("1"));
  for (int i = 0; i < 17; ++i) Order(board, MakeOrder(absl::StrCat(i)));
  const auto answers = Answers(board);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].order_id(), "16");
}

TEST_F(ModuleRelayTest, OversizedMessagesEndTheSession) {
  const SessionId board = Connect(BoardHello("1"));
  v1::BuildOrder order = MakeOrder("1");
  order.set_request(std::string(300 << 10, 'x'));
  Order(board, order);
  ASSERT_TRUE(agents_[board].closed.has_value());
  EXPECT_EQ(agents_[board].closed->code(), absl::StatusCode::kInvalidArgument);
  const SessionId builder = ConnectBuilder("b");
  v1::AgentMessage chunk;
  chunk.mutable_blob_chunk()->set_order_id("1");
  chunk.mutable_blob_chunk()->set_data(std::string((128 << 10) + 1, 'x'));
  Say(builder, chunk);
  EXPECT_TRUE(agents_[builder].closed.has_value());
}

TEST_F(ModuleRelayTest, ABoardWithoutABuilderGetsNoWorkAndSaysWhy) {
  const StreamId server = Attach();
  const SessionId board = Connect(BoardHello("1"));
  Submit(server, {MakeWork(1, 1)});
  Wait(absl::Seconds(2));
  EXPECT_TRUE(Assigned(board).empty());
  EXPECT_EQ(WaitReason(server),
            "board d1 waits for a builder of compiler c1: none that it trusts "
            "is online");
  EXPECT_EQ(Status("d1").state(), "waiting");
  EXPECT_TRUE(Status("d1").measure_only());
  const SessionId builder = ConnectBuilder("b");
  EXPECT_EQ(Assigned(board).size(), 1u);
  EXPECT_EQ(Status("d1").builder(), "b");
  ASSERT_EQ(core_->ListDevices().builders_size(), 1);
  EXPECT_EQ(core_->ListDevices().builders(0).agent_id(), "b");
  Disconnect(builder);
  EXPECT_EQ(core_->ListDevices().builders_size(), 0);
}

TEST_F(ModuleRelayTest, DevicesMayFollowTheGreeting) {
  const StreamId server = Attach();
  ConnectBuilder("b");
  const SessionId first = Connect(BoardHello("1"));
  Disconnect(first);
  v1::Hello hello = BoardHello("1");
  hello.clear_devices();
  hello.set_devices_follow(true);
  const SessionId board = Connect(hello);
  Submit(server, {MakeWork(1, 1)});
  EXPECT_TRUE(Assigned(board).empty());  // d1 is known, but not yet again here
  v1::AgentMessage update;
  *update.mutable_device_update()->mutable_devices() =
      BoardHello("1").devices();
  Say(board, update);
  EXPECT_EQ(Assigned(board).size(), 1u);
}

TEST_F(ModuleRelayTest, BoardsHearWhenBuildersChange) {
  const SessionId board = Connect(BoardHello("1"));
  const SessionId plain = ConnectBoard("9");
  Beat(board);
  const int64_t before = LastBeatAck(board).builders_change();
  ConnectBuilder("b");
  Beat(board);
  Beat(plain);
  EXPECT_NE(LastBeatAck(board).builders_change(), before);
  EXPECT_EQ(LastBeatAck(plain).builders_change(), 0);
}

}  // namespace
}  // namespace regatta

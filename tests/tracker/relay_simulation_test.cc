// Boards and builders as models around the real core, joined by connections
// that delay, repeat and break; builders, boards and the tracker die at any
// moment. Everything follows from the seed; REGATTA_TEST_SCALE multiplies their
// number, REGATTA_SIM_SEED=N runs one.
#include <deque>
#include <functional>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "tests/support/seeds.h"
#include "tests/tracker/core_fixture.h"
#include "tests/tracker/silence.h"

namespace regatta {
namespace {

constexpr int kChunks = 3;   // of every module
constexpr int kOrders = 12;  // that a board wants answered

class RelaySimulation {
 public:
  explicit RelaySimulation(uint64_t seed) : seed_(seed), random_(seed) {
    const int builders = 1 + static_cast<int>(random_.Below(3));
    for (int b = 0; b < builders; ++b) {
      Agent& agent = agents_.emplace_back();
      agent.id = absl::StrCat("b", b);
      agent.key = std::string(32, static_cast<char>('A' + b));
      agent.slots = 1 + static_cast<int>(random_.Below(2));
    }
    const int boards = 1 + static_cast<int>(random_.Below(3));
    for (int b = 0; b < boards; ++b) {
      Agent& agent = agents_.emplace_back();
      agent.id = absl::StrCat("board", b);
      agent.trusted = {std::string(32, 'A')};  // so that one always fits
      if (Chance(0.5)) agent.trusted.push_back(std::string(32, 'B'));
      for (int o = 0; o < kOrders; ++o) {
        agent.wanted.insert(absl::StrCat(agent.id, " wants ", o));
      }
    }
  }

  std::vector<std::string> Run() {
    StartTracker();
    for (Agent& agent : agents_) Connect(agent);
    Tick();
    After(300, [this] { Fault(); });
    RunUntil(absl::Seconds(60));
    faults_ = false;
    RunUntil(absl::Minutes(10));
    for (const Agent& agent : agents_) {
      if (!agent.wanted.empty()) {
        Violation(absl::StrCat(agent.id, " never had ", agent.wanted.size(),
                               " orders"));
      }
    }
    const v1::ListDevicesResponse list = core_->ListDevices();
    for (const auto& builder : list.builders()) {
      if (builder.building() != 0) {
        Violation(absl::StrCat(builder.agent_id(), " holds orders at the end"));
      }
    }
    return violations_;
  }

  std::map<std::string, int> counts;

 private:
  struct Pending {  // a board's order under way
    std::string request;
    bool answered = false;
    int chunks = 0;
  };
  struct Agent {
    std::string id;
    // Of a builder.
    std::string key;
    int slots = 0;
    std::map<std::string, std::string> building;  // order -> request
    std::set<std::string> known;                  // orders of this connection
    // Of a board.
    std::vector<std::string> trusted;
    std::set<std::string> wanted;         // requests
    std::map<std::string, Pending> open;  // by order id
    int last_order = 0;

    uint64_t connection = 0;  // 0: none
    bool welcomed = false;
    SteadyTime last_up, last_down;
    bool builder() const { return !key.empty(); }
  };
  using Event = std::function<void()>;

  bool Chance(double p) { return random_.Unit() < p; }
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(
                     random_.Below(static_cast<uint64_t>(high - low + 1)));
  }
  void Violation(const std::string& what) {
    violations_.push_back(absl::StrCat(
        "seed ", seed_, " at ", clock_.Steady().ns / 1'000'000, " ms: ", what));
  }
  void After(int64_t ms, Event event) {
    events_.emplace((clock_.Steady() + absl::Milliseconds(ms)).ns,
                    std::move(event));
  }
  void RunUntil(absl::Duration end) {
    const SteadyTime stop = start_ + end;
    while (!events_.empty() && events_.begin()->first <= stop.ns &&
           violations_.size() < 5) {
      auto node = events_.extract(events_.begin());
      const int64_t late = node.key() - clock_.Steady().ns;
      if (late > 0) clock_.Advance(absl::Nanoseconds(late));
      node.mapped()();
    }
  }

  // ---- tracker
  void StartTracker() {
    ++store_.epoch;
    ++run_;
    core_ = std::make_unique<TrackerCore>(options_, clock_, tracker_random_,
                                          store_);
  }
  void Tick() {
    Input([](TrackerCore& core) { core.Tick(); });
    if (core_ != nullptr) core_->CheckIndices();
    After(500, [this] { Tick(); });
  }
  void Input(const std::function<void(TrackerCore&)>& input) {
    if (core_ == nullptr) return;
    input(*core_);
    for (const Action& action : core_->TakeActions()) Deliver(action);
  }
  void Deliver(const Action& action) {
    const auto* send = std::get_if<SendToAgent>(&action);
    const auto* close = std::get_if<CloseSession>(&action);
    for (Agent& agent : agents_) {
      const SessionId session{agent.connection};
      const uint64_t connection = agent.connection;
      if (connection == 0) continue;
      if (send != nullptr && send->session == session) {
        Later(agent.last_down,
              [this, &agent, connection, message = send->message] {
                if (agent.connection == connection) Hears(agent, message);
              });
      } else if (close != nullptr && close->session == session) {
        if (absl::IsInvalidArgument(close->status)) {
          Violation(std::string(close->status.message()));
        }
        Later(agent.last_down, [this, &agent, connection] {
          if (agent.connection == connection) Break(agent, false);
        });
      }
    }
  }
  // In order within a direction.
  void Later(SteadyTime& last, Event event) {
    last = std::max(last, clock_.Steady() + absl::Milliseconds(Between(0, 60)));
    events_.emplace(last.ns, std::move(event));
  }

  // ---- agents
  void Connect(Agent& agent) {
    if (agent.connection != 0) return;
    if (core_ == nullptr) {
      return After(Between(50, 500), [this, &agent] { Connect(agent); });
    }
    agent.connection = ++last_connection_;
    agent.last_up = agent.last_down = clock_.Steady();
    Input([session = SessionId{agent.connection}](TrackerCore& core) {
      core.SessionOpened(session);
    });
    v1::AgentMessage message;
    v1::Hello& hello = *message.mutable_hello();
    hello.set_protocol_version(v1::PROTOCOL_VERSION_CURRENT);
    hello.set_agent_id(agent.id);
    hello.set_instance_id("i");
    for (const std::string& key : agent.trusted)
      hello.add_trusted_builders(key);
    if (agent.builder()) {
      hello.mutable_builder()->set_public_key(agent.key);
      hello.mutable_builder()->set_slots(agent.slots);
      hello.mutable_builder()->mutable_reach()->add_kinds()->set_kind("cpu");
    }
    Say(agent, message);
    Beats(agent, agent.connection);
  }
  void Beats(Agent& agent, uint64_t connection) {
    if (agent.connection != connection) return;
    v1::AgentMessage message;
    message.mutable_heartbeat()->set_sequence(1);
    if (agent.welcomed) Say(agent, message);
    After(9000, [this, &agent, connection] { Beats(agent, connection); });
  }
  void Say(Agent& agent, const v1::AgentMessage& message) {
    if (agent.connection == 0) return;
    // A broken sender repeats itself, though never its greeting.
    const int times = !message.has_hello() && faults_ && Chance(0.05) ? 2 : 1;
    for (int i = 0; i < times; ++i) {
      Later(agent.last_up, [this, &agent, connection = agent.connection,
                            run = run_, message] {
        if (agent.connection != connection || run != run_) return;
        Input([session = SessionId{connection}, &message](TrackerCore& core) {
          core.AgentSaid(session, message);
        });
      });
    }
  }
  void Break(Agent& agent, bool tracker_notices) {
    if (agent.connection == 0) return;
    if (tracker_notices) {
      After(Between(0, 300), [this, session = SessionId{agent.connection},
                              run = run_] {
        if (run == run_) {
          Input([session](TrackerCore& core) { core.SessionClosed(session); });
        }
      });
    }
    agent.connection = 0;
    agent.welcomed = false;
    agent.building.clear();
    agent.known.clear();
    agent.open.clear();
    After(Between(20, 4000), [this, &agent] { Connect(agent); });
  }

  void Hears(Agent& agent, const v1::TrackerMessage& message) {
    if (message.has_welcome()) {
      agent.welcomed = true;
      OrderMore(agent);
    } else if (message.has_build_order()) {
      GetsOrder(agent, message.build_order());
    } else if (message.has_build_end()) {
      agent.building.erase(message.build_end().order_id());
    } else if (message.has_blob_ask()) {
      v1::AgentMessage chunk;
      chunk.mutable_blob_chunk()->set_order_id(message.blob_ask().order_id());
      chunk.mutable_blob_chunk()->set_offset(message.blob_ask().offset());
      chunk.mutable_blob_chunk()->set_digest(message.blob_ask().digest());
      Say(agent, chunk);
    } else if (message.has_build_answer()) {
      GetsAnswer(agent, message.build_answer());
    } else if (message.has_blob_chunk()) {
      GetsChunk(agent, message.blob_chunk());
    }
  }

  // ---- a builder
  void GetsOrder(Agent& agent, const v1::BuildOrder& order) {
    ++counts["orders given"];
    if (!agent.builder()) return Violation(agent.id + " is no builder");
    if (!agent.known.insert(order.order_id()).second) {
      Violation(
          absl::StrCat(agent.id, " got order ", order.order_id(), " twice"));
    }
    for (const Agent& board : agents_) {
      if (absl::StartsWith(order.request(), board.id + " ") &&
          std::find(board.trusted.begin(), board.trusted.end(), agent.key) ==
              board.trusted.end()) {
        Violation(absl::StrCat(agent.id, " got an order of ", board.id,
                               ", which does not trust it"));
      }
    }
    agent.building[order.order_id()] = order.request();
    if (static_cast<int>(agent.building.size()) > agent.slots) {
      Violation(absl::StrCat(agent.id, " has ", agent.building.size(),
                             " orders for ", agent.slots, " slots"));
    }
    // Some never answer.
    if (faults_ && Chance(0.03)) return;
    After(Between(20, 1500), [this, &agent, id = order.order_id(),
                              connection = agent.connection] {
      const auto building = agent.building.find(id);
      if (agent.connection != connection || building == agent.building.end()) {
        return;
      }
      v1::AgentMessage message;
      v1::BuildAnswer& answer = *message.mutable_build_answer();
      answer.set_order_id(id);
      if (faults_ && Chance(0.1)) {
        ++counts["declined"];
        answer.set_unavailable("busy");
      } else {
        answer.set_response("for " + building->second);
      }
      agent.building.erase(building);
      Say(agent, message);
    });
  }

  // ---- a board
  void OrderMore(Agent& agent) {
    if (agent.builder() || !agent.welcomed) return;
    for (const std::string& request : agent.wanted) {
      if (agent.open.size() >= 4) return;
      const bool under_way = std::any_of(
          agent.open.begin(), agent.open.end(),
          [&](const auto& o) { return o.second.request == request; });
      if (under_way) continue;
      const std::string id = absl::StrCat(++agent.last_order);
      agent.open[id].request = request;
      v1::AgentMessage message;
      v1::BuildOrder& order = *message.mutable_build_order();
      order.set_order_id(id);
      order.set_kind("cpu");
      order.set_request(request);
      order.set_limit_ms(8000);
      Say(agent, message);
    }
  }
  void Close(Agent& agent, const std::string& id) {
    agent.open.erase(id);
    v1::AgentMessage message;
    message.mutable_build_end()->set_order_id(id);
    Say(agent, message);
    After(Between(10, 500), [this, &agent] { OrderMore(agent); });
  }
  void Ask(Agent& agent, const std::string& id, int chunk) {
    v1::AgentMessage message;
    message.mutable_blob_ask()->set_order_id(id);
    message.mutable_blob_ask()->set_offset(chunk);
    Say(agent, message);
  }
  void GetsAnswer(Agent& agent, const v1::BuildAnswer& answer) {
    const auto open = agent.open.find(answer.order_id());
    if (open == agent.open.end()) return;  // ended meanwhile
    if (!answer.unavailable().empty()) {
      ++counts["unavailable"];
      return Close(agent, answer.order_id());
    }
    if (open->second.answered) Violation(agent.id + " was answered twice");
    if (answer.response() != "for " + open->second.request) {
      Violation(absl::StrCat(agent.id, " wanted '", open->second.request,
                             "', got '", answer.response(), "'"));
    }
    open->second.answered = true;
    Ask(agent, answer.order_id(), 0);
  }
  void GetsChunk(Agent& agent, const v1::BlobChunk& chunk) {
    const std::string id = chunk.order_id();
    const auto open = agent.open.find(id);
    if (open == agent.open.end()) return;
    Pending& pending = open->second;
    if (chunk.unavailable().empty() && chunk.offset() != pending.chunks) {
      return;  // repeated
    }
    if (!chunk.unavailable().empty()) return Close(agent, id);
    if (++pending.chunks < kChunks) return Ask(agent, id, pending.chunks);
    ++counts["delivered"];
    agent.wanted.erase(pending.request);
    Close(agent, id);
  }

  void Fault() {
    if (!faults_) return;
    Agent& agent = agents_[random_.Below(agents_.size())];
    switch (random_.Below(6)) {
      case 0:
        ++counts["tracker restarts"];
        core_.reset();
        for (Agent& each : agents_) Break(each, false);
        After(Between(10, 2000), [this] {
          if (core_ == nullptr) StartTracker();
        });
        break;
      case 1:
      case 2:
        ++counts["half-open connections"];
        Break(agent, false);
        break;
      default:
        ++counts[agent.builder() ? "builders lost" : "boards lost"];
        Break(agent, true);
    }
    After(Between(100, 3000), [this] { Fault(); });
  }

  const uint64_t seed_;
  Random random_;
  Random tracker_random_{7};
  FakeClock clock_{absl::FromUnixSeconds(1'800'000'000)};
  const SteadyTime start_ = clock_.Steady();
  TrackerOptions options_;
  MemoryFleetStore store_;
  std::unique_ptr<TrackerCore> core_;
  int64_t run_ = 0;
  uint64_t last_connection_ = 0;
  bool faults_ = true;
  std::deque<Agent> agents_;  // references stay valid
  std::multimap<int64_t, Event> events_;
  std::vector<std::string> violations_;
};

TEST(RelaySimulation, EveryOrderIsAnsweredWithItsOwnModuleUnderAnyFaults) {
  const SeedRange seeds = SeedsToRun(100);
  std::map<std::string, int> counts;
  for (uint64_t seed = seeds.first; seed < seeds.end; ++seed) {
    RelaySimulation simulation(seed);
    std::vector<std::string> violations;
    {
      std::optional<Silence> silence;
      if (!seeds.single) silence.emplace();
      violations = simulation.Run();
    }
    ASSERT_TRUE(violations.empty()) << absl::StrJoin(violations, "\n")
                                    << "\nagain with: " << ReplayCommand(seed);
    for (const auto& [name, count] : simulation.counts) counts[name] += count;
  }
  for (const auto& [name, count] : counts) {
    std::cout << name << ": " << count << "\n";
  }
  if (seeds.count() < 50) return;
  for (const char* name :
       {"tracker restarts", "builders lost", "boards lost", "declined",
        "half-open connections", "unavailable", "delivered"}) {
    EXPECT_GT(counts[name], 50) << name;
  }
}

}  // namespace
}  // namespace regatta

// Counts of live objects by type; references to objects, and their types.
#include "base/live_objects.h"

#include <gtest/gtest.h>

#include <list>
#include <string>

#include "base/budget.h"

namespace halyard {
namespace {

std::string counts_by_type(const LiveObjects& objects) {
  std::string text;
  objects.each([&](const ObjectType& type, uint64_t live, uint64_t made) {
    text += std::string(type.name) + ' ' + std::to_string(live) + ' ' + std::to_string(made) + '\n';
  });
  return text;
}

constexpr ObjectType kFirstType = {"first", nullptr};
constexpr ObjectType kSecondType = {"second", nullptr};

TEST(LiveObjectsTest, AreCountedByTypeInTheOrderOfTheirFirst) {
  LiveObjects objects;
  EXPECT_EQ(counts_by_type(objects), "");
  objects.add(kSecondType, 1);
  objects.add(kFirstType, 3);
  objects.add(kSecondType, -1);
  objects.add(kFirstType, -1);
  objects.add(kFirstType, 1);
  EXPECT_EQ(counts_by_type(objects), "second 0 1\nfirst 3 4\n");
}

TEST(LiveObjectsTest, MoreTypesThanThereIsRoomForAreNotCounted) {
  LiveObjects objects;
  std::list<ObjectType> types;
  for (int i = 0; i < 20; ++i) objects.add(types.emplace_back(ObjectType{"type", nullptr}), 1);
  size_t count = 0;
  objects.each([&](const ObjectType&, uint64_t live, uint64_t) { count += live; });
  EXPECT_EQ(count, 16u);
}

TEST(LiveObjectsTest, OfAChargeAreThoseOfItsBudget) {
  const auto objects = std::make_shared<LiveObjects>();
  const auto counting = make<Budget>(1000, objects);
  Charge charge(counting);
  charge.count(kFirstType, 2);
  charge.count(kFirstType, -1);
  EXPECT_EQ(counts_by_type(*objects), "first 1 2\n");
  Charge(make<Budget>(1000)).count(kFirstType, 1);
  Charge().count(kFirstType, 1);
  EXPECT_EQ(counts_by_type(*objects), "first 1 2\n");
}

TEST(ChargeGrowsTo, WhatItDoesNotHaveYet) {
  const auto budget = make<Budget>(100);
  Charge charge(budget);
  EXPECT_TRUE(charge.grow_to(60, "a thing"));
  EXPECT_TRUE(charge.grow_to(60, "a thing"));
  EXPECT_EQ(budget->used(), 60u);
  EXPECT_FALSE(charge.grow_to(101, "a thing"));
  EXPECT_EQ(budget->used(), 60u);
  EXPECT_TRUE(charge.grow_to(100, "a thing"));
  EXPECT_EQ(budget->used(), 100u);
  Charge none;
  EXPECT_TRUE(none.grow_to(1000, "a thing"));
  EXPECT_EQ(none.bytes(), 0u);
}

struct CatObject final : ObjectOf<CatObject> {
  static const ObjectType kType;
};
struct DogObject final : ObjectOf<DogObject> {
  static const ObjectType kType;
};
const ObjectType CatObject::kType = object_type<CatObject>("cat");
const ObjectType DogObject::kType = object_type<DogObject>("dog");

TEST(ObjectTest, ACastKnowsItsTypeAlone) {
  const auto cat = make<CatObject>();
  EXPECT_EQ(cast<CatObject>(cat.get()), cat.get());
  EXPECT_EQ(cast<DogObject>(cat.get()), nullptr);
  EXPECT_EQ(cast<CatObject>(nullptr), nullptr);
}

int destroyed_objects = 0;
struct Counted final : Object {
  Counted() : Object(&kType) {}
  static const ObjectType kType;
};
const ObjectType Counted::kType = {"counted", [](Object* object) {
                                     ++destroyed_objects;
                                     delete static_cast<Counted*>(object);
                                   }};

TEST(ObjectTest, LivesAsLongAsAReference) {
  destroyed_objects = 0;
  Ref<Counted> first = make<Counted>();
  EXPECT_TRUE(first->unique());
  Ref<Counted> second = first;
  EXPECT_EQ(first->references(), 2u);
  first = nullptr;
  EXPECT_EQ(destroyed_objects, 0);
  EXPECT_TRUE(second->unique());
  retain(second.get());
  release(second.get());
  retain(nullptr);
  release(nullptr);
  second = Ref<Counted>::share(second.get());
  EXPECT_EQ(destroyed_objects, 0);
  second = nullptr;
  EXPECT_EQ(destroyed_objects, 1);
}

// A part has no reference at first, and destroys itself as often as its last one goes.
struct PartOfCounted final : Object {
  PartOfCounted() : Object(&kType, Part()) {}
  using Object::retain_first;
  static const ObjectType kType;
};
const ObjectType PartOfCounted::kType = {"part", [](Object*) { ++destroyed_objects; }, true};

TEST(ObjectTest, APartComesBack) {
  destroyed_objects = 0;
  PartOfCounted part;
  for (int i = 1; i <= 2; ++i) {
    EXPECT_TRUE(part.retain_first());
    EXPECT_FALSE(part.retain_first());
    part.release();
    EXPECT_EQ(destroyed_objects, i - 1);
    part.release();
    EXPECT_EQ(destroyed_objects, i);
    EXPECT_EQ(part.references(), 0u);
  }
}

}  // namespace
}  // namespace halyard

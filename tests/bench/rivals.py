"""Runs conversations of two agents as other libraries do, for the bench to time.

    rivals.py WHICH URL RUNS TURNS FOLDER

WHICH is openai, langgraph, langgraph-sqlite or autogen. RUNS conversations go on at the same time, each of TURNS turns in
which the agents speak one after the other and see all that was said. Writes how many turns there were to the file `turns` in FOLDER.
"""

import asyncio
import sys
from pathlib import Path

NAMES = ("Ann", "Bob")


def system(name):
    return f"You are {name}. Talk with the other until you agree."


async def openai(url, runs, turns, _folder):
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=url, api_key="none")

    async def talk():
        said = []
        for turn in range(turns):
            name = NAMES[turn % 2]
            messages = [{"role": "system", "content": system(name)}, {"role": "user", "content": "Talk."}]
            messages += [
                {"role": "assistant" if speaker == name else "user", "content": text} for speaker, text in said
            ]
            reply = await client.chat.completions.create(model="m", messages=messages)
            said.append((name, reply.choices[0].message.content))
        return len(said)

    return sum(await asyncio.gather(*(talk() for _ in range(runs))))


async def langgraph(url, runs, turns, _folder, saver=None):
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
    from langchain_openai import ChatOpenAI
    from langgraph.graph import END, START, MessagesState, StateGraph

    model = ChatOpenAI(base_url=url, api_key="none", model="m")

    def speaks(name):
        async def node(state):
            seen = [
                message if message.name in (None, name) else HumanMessage(message.content)
                for message in state["messages"]
            ]
            reply = await model.ainvoke([SystemMessage(system(name)), *seen])
            return {"messages": [AIMessage(reply.content, name=name)]}

        return node

    def goes_on(other):
        return lambda state: other if len(state["messages"]) <= turns else END

    graph = StateGraph(MessagesState)
    for name, other in (NAMES, NAMES[::-1]):
        graph.add_node(name, speaks(name))
        graph.add_conditional_edges(name, goes_on(other), [other, END])
    graph.add_edge(START, NAMES[0])
    app = graph.compile(checkpointer=saver)

    async def talk(number):
        config = {"recursion_limit": turns + 5, "configurable": {"thread_id": str(number)}}
        done = await app.ainvoke({"messages": [HumanMessage("Talk.")]}, config)
        return len(done["messages"]) - 1

    return sum(await asyncio.gather(*(talk(number) for number in range(runs))))


async def langgraph_sqlite(url, runs, turns, folder):
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    path = Path(folder) / "checkpoints.db"
    path.unlink(missing_ok=True)
    async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
        return await langgraph(url, runs, turns, folder, saver)


async def autogen(url, runs, turns, _folder):
    from autogen_agentchat.agents import AssistantAgent
    from autogen_agentchat.conditions import MaxMessageTermination
    from autogen_agentchat.teams import RoundRobinGroupChat
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    info = {
        "vision": False, "function_calling": False, "json_output": False, "family": "unknown",
        "structured_output": False,
    }  # fmt: skip
    client = OpenAIChatCompletionClient(model="m", base_url=url, api_key="none", model_info=info)

    async def talk():
        agents = [AssistantAgent(name, client, system_message=system(name)) for name in NAMES]
        team = RoundRobinGroupChat(agents, termination_condition=MaxMessageTermination(turns + 1))
        return len((await team.run(task="Talk.")).messages) - 1

    return sum(await asyncio.gather(*(talk() for _ in range(runs))))


def main():
    which, url, runs, turns, folder = sys.argv[1:]
    rivals = {"openai": openai, "langgraph": langgraph, "langgraph-sqlite": langgraph_sqlite, "autogen": autogen}
    count = asyncio.run(rivals[which](url, int(runs), int(turns), folder))
    (Path(folder) / "turns").write_text(str(count))


main()

"""The diagram of path lengths: a breadth-first search over the drawn lines finds the lengths it states."""

from collections import deque

from matplotlib.patches import Circle

from course_lib.plots import path_lengths_diagram

STEPS = {"recurrence": 9, "convolution": 4, "dilated convolution": 2, "self-attention": 1}


def test_the_shortest_paths_in_the_drawing_are_as_long_as_it_says():
    (axes,) = path_lengths_diagram().axes
    nodes = sorted(
        {tuple(round(c, 3) for c in p.center) for p in axes.patches if type(p) is Circle}
    )
    panels = [nodes[0][0] - 0.1 + 2.2 * number for number in range(5)]
    lines, thick = {}, []
    for line in axes.lines:
        ends = [(round(x, 3), round(y, 3)) for x, y in line.get_xydata()]
        if line.get_linewidth() > 1:
            thick.append(ends)
        lines.setdefault(ends[0], set()).add(ends[1])
    for (name, steps), left, right in zip(STEPS.items(), panels, panels[1:], strict=False):
        mine = [node for node in nodes if left < node[0] < right]
        assert len(mine) % 9 == 0
        first = max(mine, key=lambda node: (node[1], -node[0]))  # y grows downwards
        last = min(mine, key=lambda node: (node[1], -node[0]))
        distance, waiting = {first: 0}, deque([first])
        while waiting:
            node = waiting.popleft()
            for other in lines.get(node, ()):
                if other not in distance:
                    distance[other] = distance[node] + 1
                    waiting.append(other)
        assert distance[last] == steps, name
        assert sum(left < start[0] < right for start, _ in thick) == steps
        text = f"{steps} steps" if steps > 1 else "1 step"
        assert any(
            one.get_text() == text and left < one.get_position()[0] < right for one in axes.texts
        )
